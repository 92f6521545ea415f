"""Runs one search as a process: `python -m brokers.search.worker <pid>`.

Reads one job as JSON from standard input and writes one JSON object a line to standard output.
Exits with 0 only after the verdict, else with one line of the reason on standard error. It only
reads files of one folder; it lowers its priority below the broker, its parent, whose pid is its
argument, and ends with it.
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

# More than cleaning's (10), on which readers and the disk depend; a search only delays its
# requester.
NICENESS: Final = 15
FAILED: Final = 1


class ParentGone(Exception):
    """The parent process has ended."""


def work(files: Files, pace: Pace, source: BinaryIO, target: BinaryIO, *, parent: int) -> None:
    """Run the one job in `source` while the parent process lives."""

    def pulse() -> None:
        if os.getppid() != parent:
            raise ParentGone("the broker is gone")

    def tell(line: dict[str, Any]) -> None:
        target.write(json.dumps(line).encode() + b"\n")
        # People wait for hits, and there are thousands at most.
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
