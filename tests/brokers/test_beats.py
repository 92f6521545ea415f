"""A process tells that it serves, and beats, without ever waiting for the reader."""

import asyncio
import json
import os

from brokers import beats


def test_the_first_line_promises_beats_and_a_loop_that_turns_sends_them() -> None:
    async def scenario() -> bytes:
        reading, writing = os.pipe()
        beats.say_ready(writing, {"id": 1})
        beating = asyncio.create_task(beats.keep_beating(writing))
        await asyncio.sleep(0)
        beating.cancel()
        return os.read(reading, 100)

    line, beat, rest = asyncio.run(scenario()).split(b"\n")
    assert json.loads(line) == {"id": 1, "beats": True}
    assert (beat, rest) == (b"", b"")


def test_a_reader_that_is_stopped_or_gone_blocks_no_beat() -> None:
    reading, writing = os.pipe()
    beats.say_ready(writing, {})
    with open(writing, "wb", buffering=0, closefd=False) as pipe:
        while pipe.write(bytes(65_536)):
            pass

    async def scenario() -> None:
        beating = asyncio.create_task(beats.keep_beating(writing))
        await asyncio.sleep(0)
        assert not beating.done()
        os.close(reading)
        beats.say_ready(writing, {})
        beating.cancel()

    asyncio.run(scenario())


def test_without_a_pipe_nobody_waits() -> None:
    beats.say_ready(-1, {})
    asyncio.run(beats.keep_beating(-1))
