"""The time that one batch has: cancel it in Spark before Celery ends the worker for it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from connectors.plugins.spark.batch_size import BatchTooLarge

# A slice of the pool is ended after 15 minutes, and has up to 30 s before its last batch; Spark
# takes some seconds to end one, and files are moved behind it.
BATCH_S: Final = 600.0
# A batch is several jobs of Spark, and the one that comes next is to be ended too.
AGAIN_S: Final = 1.0


@contextmanager
def limited(cancel: Callable[[], None], seconds: float = BATCH_S) -> Iterator[None]:
    """End what goes on within after a while; BatchTooLarge where that is what ended it."""
    is_done, is_late = threading.Event(), threading.Event()

    def watch() -> None:
        wait_s = seconds
        while not is_done.wait(wait_s):
            is_late.set()
            wait_s = AGAIN_S
            # It may have ended in this moment, with its process or without.
            with suppress(Exception):
                cancel()

    watcher = threading.Thread(target=watch, name="batch-deadline", daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        # Whatever it says: what was ended fails in many ways.
        if is_late.is_set():
            raise BatchTooLarge(
                f"Spark did not write the batch within {seconds:.0f} s, so it was cancelled"
            ) from error
        raise
    finally:
        is_done.set()
        watcher.join()
