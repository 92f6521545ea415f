"""Judges a group's story by what its members told: who owned what, what was read, what committed.

Pure: it knows lines with times of one monotonic clock, and neither clients nor brokers. A partition
is its member's from the line that says assigned to the one that says revoked or lost, to the
member's closing, or to its kill.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

NS_PER_SECOND = 1_000_000_000
# More than these say nothing that the first did not.
MAX_COMPLAINTS = 20


class What(StrEnum):
    """What a line tells."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"
    # Offsets are (partition, first, last).
    READ = "read"
    # Offsets are (partition, offset), told after the broker acknowledged.
    COMMITTED = "committed"
    # The member reads nothing any more, and leaves.
    CLOSING = "closing"
    # Told by the one who killed, when the member was gone.
    KILLED = "killed"
    # Somebody asked for the committed offsets: the time is that of the question.
    FETCHED = "fetched"


ENDS = frozenset({What.CLOSING, What.KILLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that happened, as its member told it."""

    ns: int
    member: str
    what: What
    partitions: tuple[int, ...] = ()
    offsets: tuple[tuple[int, ...], ...] = ()
    # Of FETCHED: the time of the answer.
    until_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A time in which one member owned one partition; the end is None while it still does."""

    partition: int
    member: str
    start_ns: int
    end_ns: int | None
    # How it ended: revoked, lost, closing, killed.
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is wrong with a story, and what a reader wants to see of it."""

    complaints: tuple[str, ...]
    intervals: tuple[Interval, ...]
    # Records that were read more than once, which is allowed.
    repeated: int
    commits: int
    # How often somebody asked for the committed offsets and saw some.
    answers: int
    start_ns: int

    def owners(self) -> set[str]:
        return {interval.member for interval in self.intervals}

    def table(self) -> str:
        """Print the intervals, a line for each partition, in seconds since the first line."""
        by_partition: dict[int, list[str]] = defaultdict(list)
        for each in sorted(self.intervals, key=lambda each: (each.partition, each.start_ns)):
            start, end = self._seconds(each.start_ns), "…"
            if each.end_ns is not None:
                end = f"{self._seconds(each.end_ns)} {each.how}"
            by_partition[each.partition].append(f"{each.member} {start}–{end}")
        lines = [f"{place:>4}: {'; '.join(told)}" for place, told in by_partition.items()]
        told = (
            f"{self.repeated} records read again, {self.commits} commits acknowledged, "
            f"{self.answers} answers about them"
        )
        return "\n".join([*lines, told, *self.complaints])

    def _seconds(self, ns: int) -> str:
        return f"{(ns - self.start_ns) / NS_PER_SECOND:.3f}"


def parse(member: str, text: str) -> Line:
    """Read one line of a member's output; ValueError says what is wrong with it."""
    try:
        told = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{member} told no JSON: {text[:200]!r}") from error
    ns = told.get("ns") if isinstance(told, dict) else None
    if type(ns) is not int:
        raise ValueError(f"{member} told a line without its time: {text[:200]!r}")
    try:
        return Line(
            ns=ns,
            member=member,
            what=What(told["what"]),
            partitions=_numbers(told.get("partitions", [])),
            offsets=tuple(map(_numbers, told.get("offsets", []))),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{member} told what nobody understands: {text[:200]!r}") from error


def _numbers(told: Any) -> tuple[int, ...]:
    numbers = tuple(told)
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"{numbers} are not all numbers from 0 on")
    return numbers


def judge(lines: Iterable[Line], ends: Mapping[int, int]) -> Verdict:
    """Judge a finished story of a topic whose partitions have these end offsets.

    The order of the lines does not matter but among those of one member with the same time: a line
    may come late, its time counts.
    """
    ordered = sorted(lines, key=lambda line: line.ns)
    owned = _Ownership()
    work = _Work(ends)
    for line in ordered:
        owned.take(line)
        work.take(line)
    intervals = owned.all_intervals()
    complaints = [*owned.complaints, *overlaps(intervals), *work.complaints, *work.never_read()]
    if len(complaints) > MAX_COMPLAINTS:
        more = len(complaints) - MAX_COMPLAINTS
        complaints[MAX_COMPLAINTS:] = [f"and {more} more complaints"]
    return Verdict(
        complaints=tuple(complaints),
        intervals=tuple(intervals),
        repeated=work.repeated,
        commits=work.commits,
        answers=work.answers,
        start_ns=ordered[0].ns if ordered else 0,
    )


def overlaps(intervals: Iterable[Interval]) -> Iterator[str]:
    """Say where a partition had two owners at once; one may begin at the other's very end."""
    last: dict[int, Interval] = {}
    for each in sorted(intervals, key=lambda each: each.start_ns):
        before = last.get(each.partition)
        if before and (before.end_ns is None or each.start_ns < before.end_ns):
            until = "still" if before.end_ns is None else f"until {before.end_ns}"
            yield (
                f"partition {each.partition} was given to {each.member} at {each.start_ns}, "
                f"while it was {before.member}'s {until}"
            )
        # Whoever has it longest is the one whom the next must not meet.
        if before is None or not _ends_after(before, each):
            last[each.partition] = each


def _ends_after(one: Interval, other: Interval) -> bool:
    if one.end_ns is None or other.end_ns is None:
        return one.end_ns is None
    return one.end_ns > other.end_ns


class _Ownership:
    """Follows who says to own what."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._intervals: list[Interval] = []
        # Since when each member owns each partition.
        self._since: dict[str, dict[int, int]] = defaultdict(dict)
        self._ended: dict[str, What] = {}

    def take(self, line: Line) -> None:
        if line.what is What.FETCHED:
            return
        if self._ended.get(line.member) is What.KILLED:
            self._complain(line, "was dead by then")
        if line.what is What.ASSIGNED:
            self._assign(line)
        elif line.what in (What.REVOKED, What.LOST):
            # A client may revoke once more what closing ended.
            if line.member not in self._ended:
                self._end(line, line.partitions)
        elif line.what is What.READ:
            self._read(line)
        elif line.what in ENDS:
            self._end(line, tuple(self._since[line.member]))
            self._ended[line.member] = line.what

    def all_intervals(self) -> list[Interval]:
        still = [
            Interval(partition=place, member=member, start_ns=start, end_ns=None, how="")
            for member, since in self._since.items()
            for place, start in since.items()
        ]
        return [*self._intervals, *still]

    def _assign(self, line: Line) -> None:
        since = self._since[line.member]
        if line.member in self._ended:
            self._complain(line, "had left by then")
            return
        for place in line.partitions:
            if place in since:
                self._complain(line, f"owned partition {place} already")
            since.setdefault(place, line.ns)

    def _end(self, line: Line, partitions: tuple[int, ...]) -> None:
        since = self._since[line.member]
        for place in partitions:
            start = since.pop(place, None)
            if start is None:
                self._complain(line, f"did not own partition {place}")
                continue
            self._intervals.append(
                Interval(
                    partition=place,
                    member=line.member,
                    start_ns=start,
                    end_ns=line.ns,
                    how=line.what.value,
                )
            )

    def _read(self, line: Line) -> None:
        since = self._since[line.member]
        for place in {row[0] for row in line.offsets} - since.keys():
            self._complain(line, f"did not own partition {place}")

    def _complain(self, line: Line, why: str) -> None:
        self.complaints.append(f"{line.member} told {line.what} at {line.ns}, but it {why}")


@dataclass(slots=True)
class Spans:
    """Offsets that were read, as spans that neither meet nor overlap, in order."""

    spans: list[tuple[int, int]] = field(default_factory=list)

    def count(self) -> int:
        return sum(stop - start for start, stop in self.spans)

    def add(self, first: int, end: int) -> int:
        """Add offsets up to but without the end; return how many of them were there already."""
        kept, had = [], 0
        low, high = first, end
        for start, stop in self.spans:
            if stop < first or start > end:
                kept.append((start, stop))
                continue
            had += max(0, min(stop, end) - max(start, first))
            low, high = min(low, start), max(high, stop)
        self.spans = sorted([*kept, (low, high)])
        return had

    def reaches(self) -> int:
        """Return the first offset that is missing."""
        return self.spans[0][1] if self.spans and self.spans[0][0] == 0 else 0

    def gaps(self, end: int) -> Iterator[tuple[int, int]]:
        position = 0
        for start, stop in self.spans:
            if start > position:
                yield position, start
            position = stop
        if position < end:
            yield position, end


class _Work:
    """Follows what is read and what is committed."""

    def __init__(self, ends: Mapping[int, int]) -> None:
        self.complaints: list[str] = []
        self.repeated = 0
        self.commits = 0
        self.answers = 0
        self._ends = ends
        self._read: defaultdict[int, Spans] = defaultdict(Spans)
        self._committed: dict[int, int] = {}
        # Answers that had not come when the latest line was told; until then less is no fault.
        self._awaited: list[Line] = []

    def take(self, line: Line) -> None:
        if line.what is What.READ:
            for place, first, last in line.offsets:
                self._add(line, place, first, last)
        elif line.what is What.COMMITTED:
            self._catch_up(line.ns)
            self.commits += 1
            for place, offset in line.offsets:
                if offset > (reached := self._read[place].reaches()):
                    self.complaints.append(
                        f"{line.member} committed {offset} of partition {place}, "
                        f"of which {reached} was never read"
                    )
                self._move(line, place, offset)
        elif line.what is What.FETCHED:
            self._catch_up(line.ns)
            for place, offset in line.offsets:
                self._compare(line, place, offset)
            self._awaited.append(line)
            self.answers += bool(line.offsets)

    def never_read(self) -> Iterator[str]:
        for place, end in self._ends.items():
            for start, stop in self._read[place].gaps(end):
                yield f"nobody read offsets {start} to {stop - 1} of partition {place}"

    def _add(self, line: Line, place: int, first: int, last: int) -> None:
        if not first <= last < self._ends.get(place, 0):
            self.complaints.append(
                f"{line.member} read {first} to {last} of partition {place}, "
                f"which ends at {self._ends.get(place, 0)}"
            )
            return
        self.repeated += self._read[place].add(first, last + 1)

    def _catch_up(self, ns: int) -> None:
        """Count the answers that had come by then."""
        waiting = []
        for answer in self._awaited:
            if answer.until_ns > ns:
                waiting.append(answer)
                continue
            for place, offset in answer.offsets:
                self._committed[place] = max(self._committed.get(place, 0), offset)
        self._awaited = waiting

    def _move(self, line: Line, place: int, offset: int) -> None:
        self._compare(line, place, offset)
        self._committed[place] = max(self._committed.get(place, 0), offset)

    def _compare(self, line: Line, place: int, offset: int) -> None:
        if offset < (before := self._committed.get(place, 0)):
            self.complaints.append(
                f"the committed offset of partition {place} went back from {before} to {offset}, "
                f"{line.what} by {line.member} at {line.ns}"
            )
