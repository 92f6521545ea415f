"""Apache Kafka's DumpLogSegments: prints any file of a partition folder, and checks what it prints.

An index is compared with the log it belongs to, batches with their CRC.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.oracles.kafka_broker import run_tool

MAIN = "org.apache.kafka.tools.DumpLogSegments"
OFFSETS_COMPLAINT = "Non-consecutive offsets in "


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """What the tool printed: one line per record, the other lines, and its complaints."""

    records: list[str]
    others: list[str]
    complaints: list[str]


def dump(paths: Iterable[str], *flags: str) -> Dump:
    done = run_tool(MAIN, *flags, "--files", ",".join(paths))
    assert done.returncode == 0, done.stderr
    # Not splitlines: keys and values may hold what Unicode calls the end of a line.
    lines = done.stdout.rstrip("\n").split("\n")
    return Dump(
        records=[line for line in lines if line.startswith("|")],
        others=[line for line in lines if not line.startswith("|")],
        complaints=list(_complaints(done.stderr)),
    )


def _complaints(errors: str) -> Iterator[str]:
    """All that the tool has to say, but that a file begins with its own base offset.

    It expects 0 of every log, and says of each later segment that its base offset follows on -1.
    """
    base_offset = 0
    for line in errors.splitlines():
        if line.startswith(OFFSETS_COMPLAINT):
            base_offset = int(os.path.basename(line).removesuffix(".log"))
        elif line.strip() != f"-1 is followed by {base_offset}":
            yield line
