"""Topics that were deleted, or recreated under their names, after their offsets were stored.

Offsets belong to one topic: a recreated one that has grown past them would lose its beginning.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from connectors.plugins.spark import batches
from connectors.plugins.spark.batches import Batch, Offsets, State
from connectors.sdk.connector import JobContext
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.records import TopicPartition

MADE_ANEW: Final = (
    "{topic} was deleted and made anew since the last slice: each of its partitions begins where a"
    " new topic does"
)
DELETED: Final = "{topic} was deleted: what was not read of it is gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What remains of a state, and the topics whose offsets it has forgotten."""

    state: State
    made_anew: frozenset[str]
    lines: tuple[str, ...]


def leave(state: State, ids: Mapping[str, str]) -> Left:
    """Forget the offsets of topics that have another id by now, or none; pure.

    Rows of a batch that is written are rows of the former topic, and stay in it.
    """
    known = {place.topic for place in state.next} | set(state.topics)
    deleted = known - ids.keys()
    anew = {
        name
        for name in known & ids.keys()
        # A broker that knows no ids tells nothing.
        if ids[name] and state.topics.get(name, ids[name]) != ids[name]
    }
    former = deleted | anew
    if former:
        state = replace(
            state,
            next={at: offset for at, offset in state.next.items() if at.topic not in former},
            told={at: offset for at, offset in state.told.items() if at.topic not in former},
            batch=_without(state.batch, former),
        )
    topics = {name: one for name, one in state.topics.items() if name not in former}
    told = [(MADE_ANEW, name) for name in anew] + [(DELETED, name) for name in deleted]
    return Left(
        state=replace(state, topics={**topics, **{name: ids[name] for name in ids if ids[name]}}),
        made_anew=frozenset(anew),
        lines=tuple(sorted(text.format(topic=name) for text, name in told)),
    )


def _without(batch: Batch | None, former: set[str]) -> Batch | None:
    if batch is None:
        return None
    spans = tuple(span for span in batch.spans if span.place.topic not in former)
    return replace(batch, spans=spans) if spans or batch.files is not None else None


def settle(context: JobContext, state: State) -> tuple[State, bool]:
    """Forget former topics; return whether there were any, which is to be kept then.

    Commit to the group where they begin before that is kept: else a commit of ours that arrived
    after the deletion looks like an offset that a user has set.
    """
    names = {place.topic for place in context.places()}
    names |= state.topics.keys() | {place.topic for place in state.next}
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
    begin = {place: bounds[place][1 if context.begins_at_end else 0] for place in places} | altered
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
    return {
        place: committed[place]
        for place in places
        if place in committed
        and committed[place]
        not in {former.next.get(place), former.told.get(place), ends.get(place)}
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
