"""Limits the time of one batch: cancels it in Spark before Celery ends the worker."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from connectors.plugins.spark.batch_size import BatchTooLarge

# The pool ends a slice after 15 minutes. A slice takes up to 30 s before its last batch, Spark
# takes some seconds to cancel a batch, and files are moved after it.
BATCH_S: Final = 600.0
# A batch is several jobs of Spark, so cancel the next one too.
AGAIN_S: Final = 1.0


@contextmanager
def limited(cancel: Callable[[], None], seconds: float = BATCH_S) -> Iterator[None]:
    """Cancel the block after `seconds`; raise BatchTooLarge if the block failed because of that."""
    is_done, is_late = threading.Event(), threading.Event()

    def watch() -> None:
        wait_s = seconds
        while not is_done.wait(wait_s):
            is_late.set()
            wait_s = AGAIN_S
            # The block, or its process, may have ended at this moment.
            with suppress(Exception):
                cancel()

    watcher = threading.Thread(target=watch, name="batch-deadline", daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        # Ignore the text: a cancelled job fails in many ways.
        if is_late.is_set():
            raise BatchTooLarge(
                f"Spark did not write the batch within {seconds:.0f} s, so it was cancelled"
            ) from error
        raise
    finally:
        is_done.set()
        watcher.join()
