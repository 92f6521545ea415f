"""Tells a batch that ended its worker from a stop of the worker, or a loss of its lease or host.

A batch is noted as begun. A worker that finds it so replaces a worker that did not finish it. Only
an end of the worker that the home survived says something about the batch.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from connectors.plugins.spark.batches import Batch, State

# The supervisor kills a worker 5 s after it asked it to stop.
LOOK_S: Final = 0.25
# A batch that crashes its host is found by another run of the home each time.
MAX_SPARED: Final = 2
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
# Fields of /proc/PID/stat, counted after the name in brackets.
PARENT_FIELD: Final = 1
BEGAN_FIELD: Final = 19
# Batches, by job and number, that failed in this process, which could not note the failure.
SURVIVED: Final[set[tuple[str, int]]] = set()


def home_run() -> str:
    """Return a unique name of the process that starts the workers of this home.

    A worker is two processes: Celery's, which the home's supervisor starts, and this one.
    """
    boot = ""
    with suppress(OSError):
        boot = BOOT.read_text(encoding="ascii").strip()
    supervisor = _field(_field("self", PARENT_FIELD), PARENT_FIELD)
    return f"{boot}/{supervisor}/{_field(supervisor, BEGAN_FIELD)}"


def _field(process: str, number: int) -> str:
    with suppress(OSError, IndexError):
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return text.rpartition(")")[2].split()[number]
    return ""


def survived(state: State) -> None:
    """Remember that this process outlived the batch, though the batch is noted as begun."""
    SURVIVED.add((state.app, state.number))


def has_survived(state: State) -> bool:
    """Return whether this process outlived the batch, and forget it."""
    place = state.app, state.number
    found = place in SURVIVED
    SURVIVED.discard(place)
    return found


def is_spared(batch: Batch, run: str) -> bool:
    """Return whether the batch keeps its size, since another run of the home began it.

    A batch of one record cannot shrink, and a stop of the home must not fail its task.
    """
    # Former releases have not stored this.
    is_other = bool(batch.begun_by) and batch.begun_by != run
    return is_other and (batch.spared < MAX_SPARED or batch.size <= 1)


@contextmanager
def noting_stop(is_stopping: Callable[[], bool], note: Callable[[], None]) -> Iterator[None]:
    """Call `note` if a stop of the worker or the task is requested while the block runs."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_S):
            # Storing may fail for a moment, so try again until the worker is killed.
            with suppress(Exception):
                if is_stopping():
                    note()
                    return

    watcher = threading.Thread(target=watch, name="batch-stop", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
