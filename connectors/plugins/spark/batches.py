"""Which offsets the next batch has, and what is kept of it: pure.

A batch is fixed before it is run: it is run again with the same offsets until it is done, so that a
table that knows the number of its last batch takes each once.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final

from connectors.plugins.spark.schemas import Columns, from_json, to_json
from connectors.sdk.errors import ConnectorError
from connectors.sdk.records import TopicPartition

VERSION: Final = 1
FORGOTTEN: Final = (
    "{group} has lost its offsets, as groups do after some days without a commit: goes on where the"
    " table ends; reset the offsets of the connector to begin elsewhere"
)
Offsets = Mapping[TopicPartition, int]
Bounds = Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Offsets of one partition, the end excluded."""

    place: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file of a batch: where it was written, and where it is to lie in the table."""

    staged: str
    path: str
    size: int
    rows: int
    partition: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch that is not done. Without files nothing of it is in the table yet."""

    spans: tuple[Span, ...]
    files: tuple[WrittenFile, ...] | None = None
    read: int = 0
    skipped: int = 0
    # Of the frame that was written, as Spark and Delta write it.
    schema: str = ""
    # Whether its files have the columns, too, whose values are folders.
    keeps_columns: bool = False
    # Whether the next batch begins behind it; not if a user has moved the job meanwhile.
    moves: bool = True
    # Whether Spark has begun to write it. A worker that finds it so replaces one that ended.
    is_begun: bool = False
    # The run of the home in which it was begun, and how often it kept its size after another run.
    begun_by: str = ""
    spared: int = 0

    @property
    def size(self) -> int:
        return sum(span.end - span.start for span in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """What is kept of a topic that the cluster does not have: it may only be late to know it."""

    # Empty where a former release has noted none.
    id: str
    next: Offsets
    told: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a job remembers. `app` names its batches in a table that others write to as well."""

    app: str
    number: int = 0
    next: Offsets = field(default_factory=dict)
    # What the group was told last.
    told: Offsets = field(default_factory=dict)
    epoch: int = 0
    columns: Columns = field(default_factory=dict)
    batch: Batch | None = None
    # Ids of the topics that offsets are of; former releases have noted none.
    topics: Mapping[str, str] = field(default_factory=dict)
    # By name; their offsets are not among those above.
    gone: Mapping[str, Gone] = field(default_factory=dict)
    # How many offsets a batch has at most, since a larger one was ended; 0 where none was.
    most: int = 0
    # How often in a row a batch of one offset was ended for lack of time or memory.
    ends: int = 0


def new_state() -> State:
    return State(app=uuid.uuid4().hex)


def adopt(state: State, committed: Offsets) -> tuple[State, bool]:
    """Begin where the group is, if a user has moved it; tell whether that is so.

    A commit of ours may have been done without an answer, so what comes next is no other's. What
    the group has is what it was told from then on: told apart from the offsets of a batch that is
    done later, of which the group may not hear.
    """
    if state.told and not committed:
        # A group without members loses its offsets after some days; a reset commits the beginning.
        return replace(state, told={}), False
    altered = [
        place
        for place, offset in state.next.items()
        if committed.get(place) not in {state.told.get(place), offset}
    ]
    others = {
        place: offset
        for place, offset in committed.items()
        # Offsets of a deleted topic say nothing of one that gets its name.
        if place not in state.next and place.topic not in state.gone
    }
    if not altered:
        # Partitions that it has not read; where it has read none at all, it is a new job.
        return replace(state, next={**state.next, **others}, told=dict(committed)), False
    batch = state.batch
    # A batch that is written is finished first: its rows may be in the table already.
    is_written = batch is not None and batch.files is not None
    kept = dict(state.next)
    if batch is not None and is_written and batch.moves:
        kept |= {span.place: span.end for span in batch.spans}
    if any(place not in committed for place in altered):
        # They were reset; what the group was never told of is meant too.
        kept = {place: offset for place, offset in kept.items() if place in committed}
    kept = {place: offset for place, offset in kept.items() if place not in altered}
    begin = {place: committed[place] for place in altered if place in committed}
    moved = replace(state, next={**kept, **begin, **others}, told=dict(committed))
    if batch is not None:
        moved = replace(moved, batch=replace(batch, moves=False) if is_written else None)
    return moved, True


def is_told(state: State) -> bool:
    """Tell whether the group knows where the job is.

    No batch is begun before: two of them, of which the group may have heard or not, could not be
    told from offsets that somebody has altered.
    """
    return all(state.told.get(place) == offset for place, offset in state.next.items())


def plan(state: State, bounds: Bounds, *, most: int, at_end: bool) -> tuple[State, list[str]]:
    """Fix the next batch, where there is anything to read; return lines to tell."""
    lines: list[str] = []
    begin: dict[TopicPartition, int] = {}
    for place in sorted(bounds):
        first, end = bounds[place]
        known = state.next.get(place)
        start = (end if at_end else first) if known is None else known
        if start > end:
            raise ConnectorError(
                f"{place.topic}, partition {place.partition} ends at offset {end}, before {start},"
                " up to which it was read: the topic was recreated. Stop the connector and reset"
                " its offsets to read what is there now"
            )
        if start < first:
            lines.append(_lost(place, start, first))
            start = first
        begin[place] = start
    behind = {place: bounds[place][1] - start for place, start in begin.items()}
    spans = tuple(
        Span(place=place, start=begin[place], end=begin[place] + count)
        for place, count in shares(behind, most, turn=state.number).items()
        if count
    )
    state = replace(state, next={**state.next, **begin})
    return (replace(state, batch=Batch(spans=spans)) if spans else state), lines


def trimmed(batch: Batch, bounds: Bounds) -> tuple[Batch, list[str]]:
    """Take from a batch that is run again what was deleted meanwhile; return lines to tell."""
    spans, lines = [], []
    for span in batch.spans:
        # A partition without a leader has no bounds now, which says nothing of its records.
        first = bounds.get(span.place, (span.start, span.end))[0]
        start = min(max(span.start, first), span.end)
        if start > span.start:
            lines.append(_lost(span.place, span.start, start))
        if start < span.end:
            spans.append(replace(span, start=start))
    return replace(batch, spans=tuple(spans)), lines


def shares(
    behind: Mapping[TopicPartition, int], most: int, *, turn: int = 0
) -> dict[TopicPartition, int]:
    """Divide a batch among partitions, as evenly as they have something.

    Where there are more of them than offsets, they take turns.
    """
    left, found = most, dict.fromkeys(sorted(behind), 0)
    waiting = [place for place in found if behind[place]]
    if len(waiting) > most:
        first = turn * most % len(waiting)
        waiting = (waiting[first:] + waiting[:first])[:most]
    waiting.sort(key=lambda place: (behind[place], place))
    for index, place in enumerate(waiting):
        found[place] = min(behind[place], -(-left // (len(waiting) - index)))
        left -= found[place]
    return found


def done(state: State) -> State:
    """Return what is remembered behind the batch."""
    assert state.batch is not None, "a batch is done that was planned"
    ends = {span.place: span.end for span in state.batch.spans} if state.batch.moves else {}
    behind = {**state.next, **ends}
    return replace(state, number=state.number + 1, next=behind, batch=None, ends=0)


def _lost(place: TopicPartition, start: int, first: int) -> str:
    return (
        f"{first - start} offsets of {place.topic}, partition {place.partition}, from {start} on,"
        " were deleted before they were read: have the topic keep records for longer"
    )


# --- as text -----------------------------------------------------------------------------------


def dump(state: State) -> bytes:
    batch = None
    if state.batch is not None:
        batch = {
            "spans": [[*_key(span.place), span.start, span.end] for span in state.batch.spans],
            "files": None if state.batch.files is None else [*map(_file, state.batch.files)],
            "read": state.batch.read,
            "skipped": state.batch.skipped,
            "schema": state.batch.schema,
            "keeps_columns": state.batch.keeps_columns,
            "moves": state.batch.moves,
            "is_begun": state.batch.is_begun,
            "begun_by": state.batch.begun_by,
            "spared": state.batch.spared,
        }
    told = {
        "version": VERSION,
        "app": state.app,
        "number": state.number,
        "epoch": state.epoch,
        "next": _rows(state.next),
        "told": _rows(state.told),
        "columns": to_json(state.columns),
        "batch": batch,
        "topics": dict(state.topics),
        "gone": {
            name: [one.id, _rows(one.next), _rows(one.told)] for name, one in state.gone.items()
        },
        "most": state.most,
        "ends": state.ends,
    }
    return json.dumps(told).encode()


def load(content: bytes) -> State:
    """Return what was kept; ValueError and its like where it is not whole."""
    told = json.loads(content)
    if told["version"] != VERSION:
        raise ValueError(f"it is of version {told['version']}, this release reads {VERSION}")
    batch = told["batch"]
    return State(
        app=str(told["app"]),
        number=int(told["number"]),
        epoch=int(told["epoch"]),
        next=_offsets(told["next"]),
        told=_offsets(told["told"]),
        columns=from_json(told["columns"]),
        batch=None if batch is None else _batch(batch),
        # Former releases have written none of these.
        topics={str(name): str(one) for name, one in told.get("topics", {}).items()},
        gone={
            str(name): Gone(id=str(one), next=_offsets(next_), told=_offsets(told_))
            for name, (one, next_, told_) in told.get("gone", {}).items()
        },
        most=int(told.get("most", 0)),
        ends=int(told.get("ends", 0)),
    )


def _batch(told: Mapping[str, Any]) -> Batch:
    files = told["files"]
    return Batch(
        spans=tuple(
            Span(place=TopicPartition(topic=topic, partition=partition), start=start, end=end)
            for topic, partition, start, end in told["spans"]
        ),
        files=None if files is None else tuple(map(_written, files)),
        read=int(told["read"]),
        skipped=int(told["skipped"]),
        schema=str(told["schema"]),
        # A batch of an earlier release has none.
        keeps_columns=bool(told.get("keeps_columns", False)),
        moves=bool(told["moves"]),
        is_begun=bool(told.get("is_begun", False)),
        begun_by=str(told.get("begun_by", "")),
        spared=int(told.get("spared", 0)),
    )


def _written(told: Mapping[str, Any]) -> WrittenFile:
    """Return a file; ValueError for one that lies elsewhere, since it would be moved from there."""
    for text in (told["staged"], told["path"]):
        path = PurePosixPath(text)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"it names the file {text!r}, which lies outside of the table")
    return WrittenFile(**told)


def _file(one: WrittenFile) -> dict[str, Any]:
    return {
        "staged": one.staged,
        "path": one.path,
        "size": one.size,
        "rows": one.rows,
        "partition": dict(one.partition),
    }


def _key(place: TopicPartition) -> tuple[str, int]:
    return place.topic, place.partition


def _rows(offsets: Offsets) -> list[list[Any]]:
    return [[*_key(place), offset] for place, offset in sorted(offsets.items())]


def _offsets(rows: Sequence[Sequence[Any]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic=str(topic), partition=int(partition)): int(offset)
        for topic, partition, offset in rows
    }
