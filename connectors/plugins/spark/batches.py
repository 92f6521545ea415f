"""Plans the offsets of the next batch, and stores the state of a job: pure.

A batch is fixed before it runs, and runs again with the same offsets until it is done, so that a
table that knows the number of its last batch takes each batch once.
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
    "{group} has lost its offsets, as groups do after some days without a commit: continues "
    "where the table ends; reset the offsets of the connector to begin elsewhere"
)
Offsets = Mapping[TopicPartition, int]
Bounds = Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of offsets of one partition; the end is exclusive."""

    place: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file of a batch, with its path in the staging folder and in the table."""

    staged: str
    path: str
    size: int
    rows: int
    partition: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch that is not done. If `files` is None, nothing of it is in the table yet."""

    spans: tuple[Span, ...]
    files: tuple[WrittenFile, ...] | None = None
    read: int = 0
    skipped: int = 0
    # The schema of the written frame, in the form of Spark and Delta.
    schema: str = ""
    # Whether the columns whose values are folders are in the files, too.
    keeps_columns: bool = False
    # Whether the next batch begins after it; not if a user has moved the job meanwhile.
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
    """The state of a topic that the cluster does not have, or does not have yet."""

    # Empty if a former release has stored none.
    id: str
    next: Offsets
    told: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of a job. `app` identifies its batches in a table with other writers."""

    app: str
    number: int = 0
    next: Offsets = field(default_factory=dict)
    # The offsets last committed to the group.
    told: Offsets = field(default_factory=dict)
    epoch: int = 0
    columns: Columns = field(default_factory=dict)
    batch: Batch | None = None
    # Maps topics to their ids; former releases have stored none.
    topics: Mapping[str, str] = field(default_factory=dict)
    # By topic; their offsets are not among those above.
    gone: Mapping[str, Gone] = field(default_factory=dict)
    # The limit of offsets of a batch, after a larger one failed; 0 without a limit.
    most: int = 0
    # How often in a row a batch of one offset was ended for lack of time or memory.
    ends: int = 0


def new_state() -> State:
    return State(app=uuid.uuid4().hex)


def adopt(state: State, committed: Offsets) -> tuple[State, bool]:
    """Begin at the group's offsets if a user has moved them; return whether so.

    A commit of ours may have succeeded without an answer, so our next offset counts as ours. From
    then on, the group's offsets are those committed last: this distinguishes them from the offsets
    of a batch that is done later, whose commit may fail.
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
        # Offsets of a deleted topic do not apply to a new one with its name.
        if place not in state.next and place.topic not in state.gone
    }
    if not altered:
        # Partitions not read yet; if none has been read, it is a new job.
        return replace(state, next={**state.next, **others}, told=dict(committed)), False
    batch = state.batch
    # A batch that is written is finished first: its rows may be in the table already.
    is_written = batch is not None and batch.files is not None
    kept = dict(state.next)
    if batch is not None and is_written and batch.moves:
        kept |= {span.place: span.end for span in batch.spans}
    if any(place not in committed for place in altered):
        # The group was reset, so forget also the offsets that were never committed.
        kept = {place: offset for place, offset in kept.items() if place in committed}
    kept = {place: offset for place, offset in kept.items() if place not in altered}
    begin = {place: committed[place] for place in altered if place in committed}
    moved = replace(state, next={**kept, **begin, **others}, told=dict(committed))
    if batch is not None:
        moved = replace(moved, batch=replace(batch, moves=False) if is_written else None)
    return moved, True


def is_told(state: State) -> bool:
    """Return whether the group has the offsets of the job.

    If not, begin no batch: with two batches whose commits may or may not have arrived, their
    offsets could not be told from those that a user has set.
    """
    return all(state.told.get(place) == offset for place, offset in state.next.items())


def plan(state: State, bounds: Bounds, *, most: int, at_end: bool) -> tuple[State, list[str]]:
    """Fix the next batch, if there is anything to read; return lines to log."""
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
    """Remove offsets that were deleted meanwhile from a batch to run again; return lines to log."""
    spans, lines = [], []
    for span in batch.spans:
        # A partition without a leader has no bounds now; its records may still exist.
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
    """Divide a batch among partitions as evenly as their backlogs allow.

    If there are more partitions than offsets, they take turns.
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
    """Return the state after the batch."""
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
    """Parse a stored state; ValueError and its like if it is damaged."""
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
    """Return a file; ValueError for a path outside of the folder, which it would be moved from."""
    for text in (told["staged"], told["path"]):
        path = PurePosixPath(text)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"it names the file {text!r}, which is outside of the table")
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
