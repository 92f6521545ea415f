"""What is freed goes back to the system."""

import asyncio

import pytest

from gateway import memory


def test_the_c_library_is_asked_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    async def run() -> None:
        enough, loop = asyncio.Event(), asyncio.get_running_loop()

        def trim(kept: int) -> int:
            asked.append(kept)
            if len(asked) == 2:
                loop.call_soon_threadsafe(enough.set)
            return 1

        monkeypatch.setattr(memory, "TRIM_SECONDS", 0.001)
        monkeypatch.setattr(memory, "_trim", lambda: trim)
        trimming = asyncio.create_task(memory.trim_often())
        async with asyncio.timeout(20):
            await enough.wait()
        trimming.cancel()

    asyncio.run(run())

    assert asked[:2] == [0, 0], "it keeps nothing"


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_trim", lambda: None)

    asyncio.run(memory.trim_often())
