"""A ready line is read once, whole, and whatever a process writes instead is survived."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import pytest

from brokers.supervisor.ready import MAX_LINE_BYTES, ReadyLine


def said(*blocks: bytes) -> Mapping[str, Any] | None:
    """What a pipe with these blocks says; None where it says nothing before it is closed."""

    async def scenario() -> Mapping[str, Any] | None:
        reading, writing = os.pipe()
        line = ReadyLine(reading)
        for block in blocks:
            os.write(writing, block)
            await asyncio.sleep(0)
        os.close(writing)
        done, _ = await asyncio.wait({line.said}, timeout=0.05)
        line.close()
        return line.said.result() if done else None

    return asyncio.run(scenario())


def test_a_line_is_put_together() -> None:
    assert said(b'{"id"', b": 1}", b"\n") == {"id": 1}


@pytest.mark.parametrize("line", [b"ready\n", b"[1]\n", b"\xff\n", b"\n"])
def test_a_line_without_an_object_still_says_ready(line: bytes) -> None:
    assert said(line) == {}


@pytest.mark.parametrize("block", [b"", b'{"id": 1}', b"x" * (MAX_LINE_BYTES + 1)])
def test_a_pipe_without_a_line_says_nothing(block: bytes) -> None:
    assert said(block) is None
