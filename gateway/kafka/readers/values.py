"""What a reader gets beside records, and how much is kept for readers. Pure values."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from gateway.kafka.values import Place, Record

# What a record costs beside its bytes: the object and its fields.
RECORD_OVERHEAD: Final = 512


class GapReason(Enum):
    """Why there are no records; the sentence is for whoever reads."""

    DELETED = "deleted before it was read"
    CUT = "the log ends before it: it was cut, or the topic was made again"
    # What a cleaning and a transaction leave looks the same to a reader.
    NO_RECORD = "no record is there: compacted, or markers of transactions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Offsets from `start` on that nobody gets. Reading goes on at `next`: CUT is a way back."""

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
    """A partition that has appeared, and is read from here on."""

    place: Place
    offset: int


News: TypeAlias = Record | Gap | End | Begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a process keeps and holds open for its readers."""

    # All windows together; each has its part of it, within the two bounds below.
    windows_bytes: int = 128 * 1024 * 1024
    # More lets readers fall further behind before they cost fetches of their own.
    max_window_bytes: int = 4 * 1024 * 1024
    # Less holds a handful of records, and the head would stop after each of them.
    min_window_bytes: int = 64 * 1024
    # What one turn brings a reader that is behind. A fetch brings a megabyte, of which the rest is
    # thrown away; two hundred readers with that much each are 100 MB.
    turn_bytes: int = 512 * 1024
    # What turns have brought and nobody has taken yet; beyond it the reader that has been still for
    # longest loses what waits for it, and takes another turn when it comes back.
    buffers_bytes: int = 192 * 1024 * 1024
    # Partitions that are read at the same time: a fetch names all of them.
    max_places: int = 2_000
    # Readers times partitions: a thousand sockets that read twenty partitions each.
    max_cursors: int = 20_000
    # Readers that look for topics by a pattern. Each keeps the names that it means.
    max_patterns: int = 200
    # Of one caller: half of them, so that nobody keeps others out.
    max_patterns_each: int = 100


def size_of(news: News) -> int:
    if isinstance(news, Record):
        headers = sum(len(name) + len(value or b"") for name, value in news.headers)
        return len(news.key or b"") + len(news.value or b"") + headers + RECORD_OVERHEAD
    return RECORD_OVERHEAD
