"""The process that searches: `python -m brokers.search.worker <pid>`, a job in, lines out.

Knows one job, JSON on its standard input, and answers with one JSON object a line on its standard
output, exit code 0 only behind the verdict, else with one line of why on standard error. It opens
files of one folder, to read them, and nothing else; it is nice to the broker, its parent, whose
number it is told, and ends with it.
"""

import json
import os
import sys
from typing import Any, BinaryIO, Final

from brokers.clock import SystemClock
from brokers.protocol.errors import KafkaError
from brokers.search.log_search import LogSearch, Pace
from brokers.search.question import decode_job
from brokers.storage.errors import StorageError
from brokers.storage.files import Files, LocalFiles

# More than cleaning takes (10), which readers and the disk wait for; nobody waits for a search but
# the one who asked.
NICENESS: Final = 15
FAILED: Final = 1


class ParentGone(Exception):
    """Nobody waits for hits any more."""


def work(files: Files, pace: Pace, source: BinaryIO, target: BinaryIO, *, parent: int) -> None:
    """Do the one job that stands in `source`, for as long as the parent lives."""

    def pulse() -> None:
        if os.getppid() != parent:
            raise ParentGone("the broker is gone")

    def tell(line: dict[str, Any]) -> None:
        target.write(json.dumps(line).encode() + b"\n")
        # Hits are for people who wait, and there are thousands at most.
        target.flush()

    job = decode_job(source.read())
    LogSearch(files, job, pace=pace, tell=tell, pulse=pulse).run()


def main() -> int:
    """Run the worker; return its exit code."""
    os.nice(NICENESS)
    try:
        parent = int(sys.argv[1])
        work(LocalFiles(), SystemClock(), sys.stdin.buffer, sys.stdout.buffer, parent=parent)
    except (StorageError, KafkaError, OSError, ParentGone) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}".replace("\n", " ").strip() + "\n")
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
