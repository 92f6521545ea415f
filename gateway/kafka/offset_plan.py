"""Plans new offsets of a group from a request.

Pure: knows no cluster and no clock. Bounds and committed offsets of partitions are arguments, so
that the same plan is shown, exported and executed. The CSV format is that of Kafka's own
kafka-consumer-groups.sh, in both directions.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from gateway.kafka.values import Place

MAX_OFFSET: Final = 2**63 - 1
MAX_PARTITION: Final = 2**31 - 1
# Far above a line for each partition of the largest cluster; a larger file is another one.
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
NUMBER: Final = re.compile(r"[0-9]{1,19}")
# The durations that java.time.Duration, and so Kafka's tool, accepts, without signs.
DURATION: Final = re.compile(
    r"P(?:(?P<days>\d{1,9})D)?"
    r"(?P<clock>T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?"
    r"(?:(?P<seconds>\d{1,12})(?:[.,](?P<fraction>\d{1,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)

NOT_COMMITTED: Final = "nothing is committed, so the end"


class PlanError(ValueError):
    """A request that is invalid or impossible; the text says what was wrong."""


class GoalKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"  # a datetime or a duration ago: the offset found by time
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The target; `value` is an offset, a number of records or milliseconds since 1970."""

    kind: GoalKind
    value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The committed offset and the bounds of a partition.

    `found` is the offset that was looked up for the goal: by its time, or in the file.
    """

    place: Place
    committed: int | None
    start: int
    end: int
    found: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One partition before and after; `note` says why the result is not the requested offset."""

    place: Place
    before: int | None
    after: int
    start: int
    end: int
    note: str = ""

    @property
    def skipped(self) -> int:
        """Return how many offsets that the partition still holds would be skipped."""
        return 0 if self.before is None else max(0, self.after - max(self.before, self.start))

    @property
    def read_again(self) -> int:
        """Return how many offsets that the group has read would be read again."""
        return 0 if self.before is None else max(0, min(self.before, self.end) - self.after)

    def json(self) -> dict[str, Any]:
        return {
            "topic": self.place.topic,
            "partition": self.place.partition,
            "before": self.before,
            "after": self.after,
            "first_offset": self.start,
            "end_offset": self.end,
            "note": self.note or None,
        }


def plan_of(goal: Goal, partitions: Iterable[Known]) -> list[Step]:
    """Return a step for each partition, by place, always within the partition's bounds."""
    return [_step(goal, known) for known in sorted(partitions, key=lambda known: known.place)]


def below_start(wanted: int, start: int) -> str:
    return f"offset {wanted} is below the first offset {start}, so the first one"


def beyond_end(wanted: int, end: int) -> str:
    return f"offset {wanted} is beyond the end {end}, so the end"


def _step(goal: Goal, known: Known) -> Step:
    wanted, note = _wanted(goal, known)
    after = min(max(wanted, known.start), known.end)
    if after > wanted:
        note = below_start(wanted, known.start)
    elif after < wanted:
        note = beyond_end(wanted, known.end)
    return Step(
        place=known.place,
        before=known.committed,
        after=after,
        start=known.start,
        end=known.end,
        note=note,
    )


def _wanted(goal: Goal, known: Known) -> tuple[int, str]:
    match goal.kind:
        case GoalKind.EARLIEST:
            return known.start, ""
        case GoalKind.LATEST:
            return known.end, ""
        case GoalKind.OFFSET:
            return goal.value, ""
        case GoalKind.TIME | GoalKind.FILE:
            assert known.found is not None, f"{known.place} was not looked up"
            return known.found, ""
        case GoalKind.CURRENT:
            if known.committed is None:
                return known.end, NOT_COMMITTED
            return known.committed, ""
        case GoalKind.SHIFT:
            if known.committed is None:
                raise PlanError(f"{known.place}: nothing is committed that could be shifted")
            return known.committed + goal.value, ""


def parse_duration(text: str) -> int:
    """Parse an ISO 8601 duration of days and clock time, such as P1DT2H30M, to milliseconds."""
    found = DURATION.fullmatch(text)
    parts = ("days", "hours", "minutes", "seconds")
    # "P", or a trailing "T", matches the expression without any value.
    if not found or not any(found[part] for part in parts) or found["clock"] in {"T", "t"}:
        raise PlanError(f"{text!r} is not a duration: give P7D, PT30M or P1DT2H")
    days, hours, minutes, seconds = (int(found[part] or 0) for part in parts)
    thousandths = int((found["fraction"] or "").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + thousandths


def parse_places(text: str) -> tuple[str, tuple[int, ...]]:
    """Parse TOPIC or TOPIC:0,1,2 as Kafka's tool does; no partitions mean all of them."""
    topic, colon, listed = text.partition(":")
    indexes = listed.split(",") if colon else []
    if not topic or not all(_is_number(index, MAX_PARTITION) for index in indexes):
        raise PlanError(f"{text!r} is not a topic, or a topic with partitions such as orders:0,1")
    return topic, tuple(sorted({int(index) for index in indexes}))


def parse_topics(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Parse several of these; a repeated topic means all partitions named for it."""
    topics: dict[str, tuple[int, ...]] = {}
    for text in texts:
        topic, indexes = parse_places(text)
        before = topics.get(topic)
        is_whole = not indexes or before == ()
        topics[topic] = () if is_whole else tuple(sorted({*(before or ()), *indexes}))
    return topics


def csv_of(offsets: Iterable[tuple[Place, int]]) -> str:
    """Return `topic,partition,offset` for each place, in the format of Kafka's tool."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows((place.topic, place.partition, offset) for place, offset in offsets)
    return text.getvalue()


def parse_csv(text: str, group: str) -> Mapping[Place, int]:
    """Parse an export: rows of three columns, or of four that begin with the group.

    Rows of other groups are left out; a file without a row of the group is an error.
    """
    offsets: dict[Place, int] = {}
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        for row in rows:
            if row:
                _take_row(offsets, [cell.strip() for cell in row], rows.line_num, group)
    except csv.Error as error:
        raise PlanError(f"line {rows.line_num}: {error}") from None
    if not offsets:
        raise PlanError(f"no row is about group {group}")
    return offsets


def _take_row(offsets: dict[Place, int], row: list[str], line: int, group: str) -> None:
    if len(row) not in {3, 4}:
        raise PlanError(
            f"line {line} has {len(row)} columns: topic,partition,offset are wanted,"
            " or group,topic,partition,offset"
        )
    *groups, topic, partition, offset = row
    if not topic or not _is_number(partition, MAX_PARTITION):
        raise PlanError(f"line {line}: {topic!r},{partition!r} is not a topic with a partition")
    if not _is_number(offset, MAX_OFFSET):
        raise PlanError(f"line {line}: {offset!r} is not an offset")
    if groups and groups != [group]:
        return
    place = Place(topic=topic, partition=int(partition))
    if place in offsets:
        raise PlanError(f"line {line} names {place} a second time")
    offsets[place] = int(offset)


def _is_number(text: str, limit: int) -> bool:
    return NUMBER.fullmatch(text) is not None and int(text) <= limit
