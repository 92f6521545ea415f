"""The in-process broker of `tests/fakes/broker.py` beside a test that blocks, in a thread.

For what is tested from outside with a client that knows no event loop: the house's client and the
command line.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes.broker import RunningBroker, running_broker

T = TypeVar("T")

START_SECONDS = 30


@dataclass
class BesideBroker:
    """A broker that serves in another thread."""

    running: RunningBroker
    loop: asyncio.AbstractEventLoop

    @property
    def bootstrap(self) -> str:
        return self.running.bootstrap

    def call(self, work: Callable[[], T]) -> T:
        """Does something in the broker's thread, to which its parts belong."""

        async def done() -> T:
            return work()

        return self.wait(done())

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for something that the broker's loop does."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(START_SECONDS)


@contextmanager
def broker_beside(
    tmp_path: Path,
    *,
    topics: Mapping[str, int] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> Iterator[BesideBroker]:
    """Run a broker until the block ends; what ended it early is raised here."""
    ready: Future[BesideBroker] = Future()
    stop = asyncio.Event()

    async def serve() -> None:
        async with running_broker(tmp_path, topics=topics, defaults=defaults) as running:
            ready.set_result(BesideBroker(running, asyncio.get_running_loop()))
            await stop.wait()

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            # Whatever it was, the test that waits must hear of it.
            if not ready.done():
                ready.set_exception(error)
            raise

    thread = threading.Thread(target=work, name="broker", daemon=True)
    thread.start()
    beside = ready.result(START_SECONDS)
    try:
        yield beside
    finally:
        beside.loop.call_soon_threadsafe(stop.set)
        thread.join(START_SECONDS)
