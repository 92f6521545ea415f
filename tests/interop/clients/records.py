"""What every client writes and reads: records of every odd shape, and one hash over what came back.

The expectation is made from what went in. Shapes are a table, so that each client can name the
ones it has no way to send, and nothing is skipped without a reason.
"""

import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from itertools import product
from random import Random
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]

# A time long ago, that no client would come up with by itself.
FIRST_TIMESTAMP = 1_600_000_000_000
PARTITIONS = (0, 1, 2)
LARGE_BYTES = 900_000
# One in two of the large values repeats a piece of this size, so that every codec has work.
PIECE_BYTES = 30_000

UNICODE = "žluťoučký kůň \U0001d11e 漢字"
BINARY = bytes(range(256))

KEYS: tuple[bytes | None, ...] = (None, b"", b"key", UNICODE.encode())
VALUES: tuple[bytes | None, ...] = (None, b"", b"value", UNICODE.encode(), BINARY)
HEADERS: tuple[Headers, ...] = (
    (),
    (("name", b"content"),),
    (("null", None),),
    (("empty", b""),),
    ((UNICODE, UNICODE.encode()),),
    (("binary", BINARY),),
    (("same", b"first"), ("same", b"second")),
    (("", b"a name of no letters"),),
    tuple((f"h{number}", b"x" * number) for number in range(1, 12)),
)


class Trait(Enum):
    """Something about a record that not every client can send."""

    NULL_KEY_NULL_VALUE = auto()
    NULL_KEY_EMPTY_VALUE = auto()
    EMPTY_KEY_NULL_VALUE = auto()
    NULL_HEADER = auto()
    UNNAMED_HEADER = auto()
    BINARY_HEADER = auto()
    # Every record has a time; not every client lets its user choose it.
    OWN_TIMESTAMP = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Row(NamedTuple):
    """A record as a reader found it."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


SHOWS: dict[Trait, Callable[[Sent], bool]] = {
    Trait.NULL_KEY_NULL_VALUE: lambda sent: sent.key is None and sent.value is None,
    Trait.NULL_KEY_EMPTY_VALUE: lambda sent: sent.key is None and sent.value == b"",
    Trait.EMPTY_KEY_NULL_VALUE: lambda sent: sent.key == b"" and sent.value is None,
    Trait.NULL_HEADER: lambda sent: any(content is None for _, content in sent.headers),
    Trait.UNNAMED_HEADER: lambda sent: any(name == "" for name, _ in sent.headers),
    Trait.BINARY_HEADER: lambda sent: any(content == BINARY for _, content in sent.headers),
    Trait.OWN_TIMESTAMP: lambda _: False,
}


def small_records(total: int, *, without: Iterable[Trait]) -> list[Sent]:
    """Make `total` small records of every shape but those named, shapes of one kind in a row.

    The rows let a client that is told headers and nulls once for a whole run write many at a time.
    """
    without = frozenset(without)
    shapes = [shape for shape in _shapes() if not any(SHOWS[trait](shape) for trait in without)]
    assert total >= len(shapes) * len(PARTITIONS), f"{total} records do not show every shape"
    # Every shape comes so often, and the first few once more.
    each, more = divmod(total, len(shapes))
    repeated = [shape for place, shape in enumerate(shapes) for _ in range(each + (place < more))]
    return [
        Sent(
            partition=PARTITIONS[number % len(PARTITIONS)],
            timestamp=FIRST_TIMESTAMP + number,
            key=_numbered(shape.key, number),
            value=_numbered(shape.value, number),
            headers=shape.headers,
        )
        for number, shape in enumerate(repeated)
    ]


def _shapes() -> list[Sent]:
    return [
        Sent(partition=0, timestamp=0, key=key, value=value, headers=headers)
        for headers, value, key in product(HEADERS, VALUES, KEYS)
    ]


def _numbered(content: bytes | None, number: int) -> bytes | None:
    """Make a text tell its number, so that no record passes for another."""
    return content + b" %d" % number if content else content


def large_records(total: int) -> list[Sent]:
    draw = Random(11)
    return [
        Sent(
            partition=PARTITIONS[number % len(PARTITIONS)],
            timestamp=FIRST_TIMESTAMP + 10_000_000 + number,
            key=b"large %d" % number,
            value=_large_value(draw, is_repetitive=bool(number % 2)),
            headers=(),
        )
        for number in range(total)
    ]


def _large_value(draw: Random, *, is_repetitive: bool) -> bytes:
    if is_repetitive:
        return draw.randbytes(PIECE_BYTES) * (LARGE_BYTES // PIECE_BYTES)
    return draw.randbytes(LARGE_BYTES)


def rows_expected(records: Iterable[Sent]) -> list[Row]:
    """Say what a reader must find: offsets are dense and in the order of writing."""
    ends: Counter[int] = Counter()
    rows = []
    for sent in records:
        rows.append(
            Row(
                sent.partition,
                ends[sent.partition],
                sent.timestamp,
                sent.key,
                sent.value,
                sent.headers,
            )
        )
        ends[sent.partition] += 1
    return sorted(rows, key=_place)


def digest(rows: Iterable[Row], *, with_timestamps: bool = True) -> str:
    """Hash rows in the order of partition and offset; two different lists never look alike."""
    found = hashlib.sha256()
    for row in sorted(rows, key=_place):
        timestamp = row.timestamp if with_timestamps else 0
        found.update(struct.pack(">iqqi", row.partition, row.offset, timestamp, len(row.headers)))
        names = [content for name, value in row.headers for content in (name.encode(), value)]
        for content in (row.key, row.value, *names):
            found.update(struct.pack(">i", -1 if content is None else len(content)))
            found.update(content or b"")
    return found.hexdigest()


def difference(expected: Iterable[Row], found: Iterable[Row]) -> str:
    """Describe the first place where two lists differ, for the message of a failed test."""
    wanted, had = ({_place(row): row for row in rows} for rows in (expected, found))
    for place in sorted(wanted.keys() | had.keys()):
        if wanted.get(place) != had.get(place):
            texts = [str(rows.get(place))[:400] for rows in (wanted, had)]
            return f"of {len(wanted)} and {len(had)} rows first {texts[0]} != {texts[1]}"
    return f"no difference in {len(wanted)} rows, so a place was found twice"


def _place(row: Row) -> tuple[int, int]:
    return row.partition, row.offset
