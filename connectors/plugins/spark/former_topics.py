"""Handles topics that were deleted or recreated after their offsets were stored.

Offsets belong to one topic: a recreated topic that has grown past them would lose its beginning.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from connectors.plugins.spark import batches
from connectors.plugins.spark.batches import Batch, Gone, Offsets, State
from connectors.sdk.connector import JobContext
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.records import TopicPartition

MADE_ANEW: Final = (
    "{topic} was deleted and recreated since the last slice: each of its partitions begins where a"
    " new topic does"
)
DELETED: Final = "{topic} no longer exists: its unread records are lost"
BACK: Final = "{topic} exists again with the same id: it is read on from where it was"
# Far more than are deleted while a job runs; the oldest are forgotten first.
MAX_GONE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The remaining state, and the topics whose offsets were removed from it."""

    state: State
    made_anew: frozenset[str]
    lines: tuple[str, ...]


def leave(state: State, ids: Mapping[str, str]) -> Left:
    """Set aside the offsets of topics that are deleted or have another id now; pure.

    Rows of a batch that is written belong to the former topic, and stay in it. Offsets of a deleted
    topic are kept: a broker may not know the topic yet, or it may be recreated.
    """
    known = {place.topic for place in state.next} | set(state.topics)
    former_ids = {name: one.id for name, one in state.gone.items()} | dict(state.topics)
    deleted = known - ids.keys()
    anew = {
        name
        for name in (known | state.gone.keys()) & ids.keys()
        # An empty id is from a broker without topic ids.
        if ids[name] and (former_ids.get(name) or ids[name]) != ids[name]
    }
    back = (state.gone.keys() & ids.keys()) - anew
    former = deleted | anew
    gone = {name: one for name, one in state.gone.items() if name not in ids}
    gone |= {name: _gone(state, name) for name in sorted(deleted)}
    topics = {name: one for name, one in state.topics.items() if name not in former}
    returned = [state.gone[name] for name in sorted(back)]
    told = [(MADE_ANEW, name) for name in anew] + [(DELETED, name) for name in deleted]
    told += [(BACK, name) for name in back]
    return Left(
        state=replace(
            state,
            next=_of_others(state.next, former) | _all(one.next for one in returned),
            told=_of_others(state.told, former) | _all(one.told for one in returned),
            batch=_without(state.batch, former) if former else state.batch,
            topics={**topics, **{name: ids[name] for name in ids if ids[name]}},
            gone=dict(list(gone.items())[-MAX_GONE:]),
        ),
        made_anew=frozenset(anew),
        lines=tuple(sorted(text.format(topic=name) for text, name in told)),
    )


def _gone(state: State, name: str) -> Gone:
    return Gone(
        id=state.topics.get(name, ""),
        next={place: offset for place, offset in state.next.items() if place.topic == name},
        told={place: offset for place, offset in state.told.items() if place.topic == name},
    )


def _of_others(offsets: Offsets, names: Collection[str]) -> dict[TopicPartition, int]:
    return {place: offset for place, offset in offsets.items() if place.topic not in names}


def _all(parts: Iterable[Offsets]) -> dict[TopicPartition, int]:
    return {place: offset for part in parts for place, offset in part.items()}


def _without(batch: Batch | None, former: set[str]) -> Batch | None:
    if batch is None:
        return None
    spans = tuple(span for span in batch.spans if span.place.topic not in former)
    return replace(batch, spans=spans) if spans or batch.files is not None else None


def settle(context: JobContext, state: State) -> tuple[State, bool]:
    """Forget former topics; return whether there were any, so that the caller stores the state.

    Commit their first offsets to the group before the state is stored: otherwise a commit of ours
    that arrived after the deletion would look like an offset that a user has set.
    """
    names = {place.topic for place in context.places()}
    names |= state.topics.keys() | state.gone.keys() | {place.topic for place in state.next}
    left = leave(state, context.topic_ids(names))
    for line in left.lines:
        context.log(line)
    if not left.made_anew:
        return left.state, bool(left.lines)
    places = [place for place in context.places() if place.topic in left.made_anew]
    bounds = context.bounds()
    for place in places:
        if place not in bounds:
            raise RetriableError(
                f"{place.topic} was recreated, and its partition {place.partition} has no leader"
                " yet, so it is not known where it begins"
            )
    altered = _altered(state, context.committed(), places)
    begin = {place: bounds[place][1 if context.begins_at_end else 0] for place in places} | dict(
        altered
    )
    if not context.commit(begin):
        raise RetriableError(
            f"group {context.group} did not take the offsets where {min(left.made_anew)} begins,"
            " which was recreated"
        )
    next_ = {**left.state.next, **begin}
    return replace(left.state, next=next_, told={**left.state.told, **begin}), True


def _altered(
    former: State, committed: Offsets, places: Iterable[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Return offsets of new topics that a user has set: none that we may have committed."""
    batch = former.batch
    ends = {span.place: span.end for span in batch.spans} if batch is not None else {}
    next_ = dict(former.next) | _all(one.next for one in former.gone.values())
    told = dict(former.told) | _all(one.told for one in former.gone.values())
    return {
        place: committed[place]
        for place in places
        if place in committed
        and committed[place] not in {next_.get(place), told.get(place), ends.get(place)}
    }


def plan(context: JobContext, state: State, *, most: int) -> tuple[State, list[str]]:
    """Fix the next batch; RetriableError if a topic was recreated since its id was read."""
    try:
        return batches.plan(state, context.bounds(), most=most, at_end=context.begins_at_end)
    except ConnectorError:
        names = state.topics.keys() | {place.topic for place in state.next}
        if leave(state, context.topic_ids(names)).made_anew:
            raise RetriableError("a topic was recreated while its offsets were looked up") from None
        raise
