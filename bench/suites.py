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
    "groups": "consumer groups: joins of hundreds, commits, heartbeats, ten thousand at rest",
    "loop": "what one costly client does to the others of a broker",
    "controlplane": "four processes that write the cluster's metadata, and a fence among them",
    "gateway": "records in by REST, next to the client library alone; sockets; the console beside",
    "console": "the console at its limits: its collector, its pages, its event streams",
    "gateway_reads": "readers without a group, alone and beside two hundred that are slow",
    "connect": "a home at rest without connectors, and records from a producer to a sink",
    "scale": "many partitions, ten thousand idle connections, clients that come and go",
    "spark": "rows from topics to Spark, in batches and as a stream",
    "soak": "an hour of a cluster that nobody uses",
    "verdicts": "what the console says of groups, beside a judge that sees only wire calls",
}
# Run only when they are named: they take long, and most of it is waiting.
LONG = frozenset({"connect", "loop", "scale", "soak", "spark", "verdicts"})
# The peer of the suite "broker" that it starts itself.
KAFKA = "kafka"
# Which options a suite takes; the rest of the command line is everybody's.
OPTIONS = {
    "broker": "peer",
    "console": "screenshots",
    "groups": "peer",
    "controlplane": "postgres",
    "scale": "minutes",
    "soak": "minutes",
    "verdicts": "minutes",
}


class Suite(Protocol):
    def run(self, **options: str | int) -> Iterable[Table]:
        """`screenshots` is a folder to take pictures into,
        `peer` is another broker's HOST:PORT or KAFKA, `minutes` how long the slow ones go on,
        `postgres` the URL of a database that may be written to.
        """
        ...


def load(name: str) -> Suite:
    return cast("Suite", importlib.import_module(f"bench.{name}"))
