"""Keeps the highest producer id of a log dir in a file, for when its logs forget producers.

A log forgets a producer by expiry, by a cut, or with its whole folder; if the cluster's database is
restored from an older copy after that, only this file records that the id was in use. The value is
an upper bound: an id above it has never been in a log of this dir, nor in a block that this broker
got.
"""

from collections.abc import Callable, Iterable
from typing import Final

from brokers.protocol.records.crc32c import crc32c
from brokers.storage.checkpoints import MAX_INT64, decode_lines, decode_number, encode_lines
from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, read_file, replace_file

# A client may write any id into a batch. One above this bound is ignored, so that no client can
# exhaust the cluster's counter: half of all ids stay for blocks. The counter of a new cluster
# begins below 2^60.
MAX_BELIEVED: Final = 2**62


class SeenProducerIds:
    """The highest producer id of all logs that share this. Belongs to their thread.

    `note` is called when a producer is new to a partition, never for each batch.
    """

    __slots__ = ("highest", "on_seen")

    def __init__(self) -> None:
        self.highest = -1
        # Called with every noted id: the holder of a block of unused ids compares.
        self.on_seen: Callable[[int], None] | None = None

    def note(self, producer_id: int) -> None:
        """Record a producer found in a log or appended to one."""
        if self.highest < producer_id <= MAX_BELIEVED:
            self.highest = producer_id
        if self.on_seen is not None:
            self.on_seen(producer_id)

    def note_all(self, producer_ids: Iterable[int]) -> None:
        """Record every producer of a snapshot."""
        for producer_id in producer_ids:
            self.note(producer_id)

    def reserve(self, producer_id: int) -> None:
        """Count an id and all below as used; the cluster's store sends it, so without a bound."""
        self.highest = max(self.highest, producer_id)


def read_highest(files: Files, path: str) -> int:
    """Return what `write_highest` wrote, -1 without a file; StorageCorrupt for a damaged one."""
    try:
        data = read_file(files, path)
    except FileNotFoundError:
        return -1
    lines = decode_lines(data, path)
    number, _, checksum = lines[0].partition(" ") if len(lines) == 1 else ("", "", "")
    highest = decode_number(number, MAX_INT64)
    if highest is None or checksum != _checksum(number):
        raise StorageCorrupt(path, 0, f"{data[:80]!r} is not a producer id with its checksum")
    return highest


def write_highest(files: Files, path: str, highest: int) -> None:
    """Replace the file durably: after a crash the old or the new one is there, whole."""
    replace_file(files, path, encode_lines([f"{highest} {_checksum(str(highest))}"]))


def _checksum(number: str) -> str:
    return f"{crc32c(number.encode('ascii')):08x}"
