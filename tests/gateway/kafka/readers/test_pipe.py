"""What threads hand over to the event loop."""

import asyncio
import threading

import pytest

from gateway.kafka.readers.pipe import Pipe, Stopped


def test_a_writer_stands_still_until_there_is_room() -> None:
    async def slow() -> None:
        pipe, put = Pipe(max_bytes=10), []

        def write() -> None:
            for number in range(20):
                pipe.put(b"%02d--" % number)
                put.append(number)
            pipe.finish()

        thread = threading.Thread(target=write)
        thread.start()
        taken: list[bytes] = []
        while pieces := await pipe.take():
            assert sum(len(piece) for piece in pieces) <= 10
            taken += pieces
        thread.join()
        assert taken == [b"%02d--" % number for number in range(20)]

    asyncio.run(slow())


def test_a_piece_larger_than_the_bound_goes_alone() -> None:
    async def large() -> None:
        pipe = Pipe(max_bytes=10)
        await asyncio.to_thread(pipe.put, b"x" * 100)

        assert await pipe.take() == [b"x" * 100]

    asyncio.run(large())


def test_a_writer_that_stands_still_wakes_when_nobody_wants_more() -> None:
    async def stopped() -> None:
        pipe = Pipe(max_bytes=1)
        pipe.put(b"x")
        writing = asyncio.create_task(asyncio.to_thread(pipe.put, b"y"))
        await asyncio.sleep(0)

        pipe.stop("left")

        with pytest.raises(Stopped, match="left"):
            await writing

    asyncio.run(stopped())


def test_the_first_reason_stays() -> None:
    async def twice() -> None:
        pipe = Pipe()
        pipe.stop("left")
        pipe.stop("restarting")

        with pytest.raises(Stopped, match="left"):
            pipe.check()

    asyncio.run(twice())


def test_a_last_piece_is_handed_over_after_the_stop() -> None:
    async def last() -> None:
        pipe = Pipe(max_bytes=1)
        pipe.put(b"x")
        pipe.stop("signed out")
        pipe.put_last(b"the end")
        pipe.finish()

        assert await pipe.take() == [b"x", b"the end"]
        assert await pipe.take() == []

    asyncio.run(last())


def test_who_asks_to_be_told_of_the_stop_is_told_once_or_at_once() -> None:
    async def told() -> None:
        pipe, calls = Pipe(), []
        with pipe.stopping(lambda: calls.append("early")):
            pipe.stop("left")
        with pipe.stopping(lambda: calls.append("late")):
            pass
        with pipe.stopping(lambda: calls.append("gone")):
            pipe.stop("again")

        assert calls[:2] == ["early", "late"]

    asyncio.run(told())


def test_a_loop_that_has_ended_is_told_nothing() -> None:
    async def made() -> Pipe:
        return Pipe()

    pipe = asyncio.run(made())

    pipe.put(b"x")
    pipe.finish()
