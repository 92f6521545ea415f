"""Whether a batch has ended its worker, or the worker was stopped, lost its lease or its host.

A batch is noted as begun, and a worker that finds it so replaces one that did not end it. Only an
end that the home has outlived says something about the batch.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from connectors.plugins.spark.batches import Batch, State

# The supervisor kills a worker 5 s after it asked it to stop.
LOOK_S: Final = 0.25
# A batch that takes its whole host with it is found by another run of the home each time.
MAX_SPARED: Final = 2
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
# Fields of /proc/PID/stat, counted behind the name in brackets.
PARENT_FIELD: Final = 1
BEGAN_FIELD: Final = 19
# Batches that failed in this process, which could not note it, by their job and number.
SURVIVED: Final[set[tuple[str, int]]] = set()


def home_run() -> str:
    """Name the process that starts the workers of this home, unlike any other anywhere.

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
    """Remember that this process lives, though the batch is noted as begun."""
    SURVIVED.add((state.app, state.number))


def has_survived(state: State) -> bool:
    """Tell whether this process outlived the batch; it says so once."""
    place = state.app, state.number
    found = place in SURVIVED
    SURVIVED.discard(place)
    return found


def is_spared(batch: Batch, run: str) -> bool:
    """Tell whether the batch keeps its size, since another run of a home began it.

    One record cannot be made smaller, and a stop of a home must not end its task.
    """
    # Former releases have not noted it.
    is_other = bool(batch.begun_by) and batch.begun_by != run
    return is_other and (batch.spared < MAX_SPARED or batch.size <= 1)


@contextmanager
def noting_stop(is_stopping: Callable[[], bool], note: Callable[[], None]) -> Iterator[None]:
    """Call `note` if a stop of the worker or the task is requested while the block runs."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_S):
            # Storing may fail for a moment, and the worker has a few more.
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
