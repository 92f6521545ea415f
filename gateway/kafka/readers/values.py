"""Defines the news that readers get beside records, and the limits of buffers. Pure values."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from gateway.kafka.values import Place, Record

# The cost of a record beside its bytes: the object and its fields.
RECORD_OVERHEAD: Final = 512


class GapReason(Enum):
    """Why there are no records; the sentence is for readers."""

    DELETED = "deleted before it was read"
    CUT = "the log ends before it: it was truncated, or the topic was recreated"
    # Compaction and transactions look the same to a reader.
    NO_RECORD = "no record is there: compacted, or markers of transactions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Skipped offsets from `start` on. Reading continues at `next`, which for CUT is lower."""

    place: Place
    start: int
    next: int
    reason: GapReason


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Nothing more comes from a partition; `name` is Kafka's name of the reason."""

    place: Place
    name: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """A new partition, which is read from this offset on."""

    place: Place
    offset: int


News: TypeAlias = Record | Gap | End | Begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a process buffers and keeps open for its readers."""

    # All windows together; each has a share of it, within the two bounds below.
    windows_bytes: int = 128 * 1024 * 1024
    # A larger window lets readers fall further behind before they need fetches of their own.
    max_window_bytes: int = 4 * 1024 * 1024
    # A smaller one holds only a few records, and the head would stop after each of them.
    min_window_bytes: int = 64 * 1024
    # Records of one turn for a reader that is behind. A fetch takes a megabyte, the rest of which
    # is discarded; two hundred readers with this much each take 100 MB.
    turn_bytes: int = 512 * 1024
    # Records from turns that are not taken yet; above the limit, the least recently active reader
    # loses its records, and takes another turn when it returns.
    buffers_bytes: int = 192 * 1024 * 1024
    # Partitions that are read at the same time: a fetch names all of them.
    max_places: int = 2_000
    # Readers times partitions: a thousand sockets that read twenty partitions each.
    max_cursors: int = 20_000
    # Readers by pattern. Each keeps the names that match.
    max_patterns: int = 200
    # Of one caller: half of them, so that it cannot block others.
    max_patterns_each: int = 100


def size_of(news: News) -> int:
    """Return roughly how much memory news take."""
    if isinstance(news, Record):
        headers = sum(len(name) + len(value or b"") for name, value in news.headers)
        return len(news.key or b"") + len(news.value or b"") + headers + RECORD_OVERHEAD
    return RECORD_OVERHEAD


def content_size(record: Record) -> int:
    """Return the bytes of key, value and headers together."""
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
