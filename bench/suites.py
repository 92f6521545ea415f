"""Which benchmarks there are.

A suite is a module `bench/<name>.py` with `run()`, which yields tables as they are ready, and a row
here.
"""

import importlib
from collections.abc import Iterable
from typing import Protocol, cast

from bench.measure import Table

# name of the suite: what it measures. A suite is imported only when it runs.
SUITES = {
    "codec": "messages encoded and decoded, next to kio and kafka-python",
    "records": "record batches checked, read, built and compressed",
    "log": "append, read, lookup and recovery of the log, next to bare system calls",
    "broker": "a whole broker over its socket, next to the kernel alone and, if given, a peer",
}


class Suite(Protocol):
    def run(self, **options: str) -> Iterable[Table]:
        """The only option so far is the `peer` of the suite of brokers: another's HOST:PORT."""
        ...


def load(name: str) -> Suite:
    return cast("Suite", importlib.import_module(f"bench.{name}"))
