"""Plans a change of a group from the brokers' present data, by one function for each kind.

Topics that a user may not view are not named to that user, and not changed if avoidable.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from brokers.controlplane.services import GroupChangeKind
from console.group_changes.desk import Desk
from console.group_changes.plans import (
    MAX_PLACES,
    GroupPlan,
    LeftOut,
    digest_of,
    gone,
    planned,
)
from gateway.kafka.group_view import GroupView
from gateway.kafka.offset_plan import Goal, GoalKind, Known, plan_of
from gateway.kafka.values import Place, Topic

NOT_TOUCHED: Final = "an admin can give you the right to view them, on the Users page"
GO_AS_WELL: Final = "the group's offsets of them go as well"


class NoPlan(Exception):
    """No plan is possible; the text says what is missing, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedReset:
    """The request of a form. `topics` None: all in which the group has offsets."""

    goal: Goal
    topics: Mapping[str, tuple[int, ...]] | None
    # Offsets of each place, from a file; from another group if one is named.
    file: Mapping[Place, int] | None = None
    source: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The cluster and group of a change, the user's rights, and the time."""

    cluster_id: str
    group: str
    may_view: Callable[[str], bool]  # by the name of a topic
    now_ms: int


def plan_reset(at: Desk, around: Around, asked: AskedReset) -> GroupPlan:
    """Return the plan of a reset. Raises NoPlan if there is nothing to set."""
    view = at.view(around.group)
    looked_up = at.offsets(asked.source) if asked.source else asked.file
    wanted = _wanted(view, around, asked, looked_up)
    hidden = {topic for topic in wanted if not around.may_view(topic)}
    wanted = {topic: indexes for topic, indexes in wanted.items() if topic not in hidden}
    topics = at.topics(wanted)
    places, left_out = _existing(view, asked, wanted, topics)
    if hidden:
        left_out.append(_hidden(hidden, NOT_TOUCHED))
    _check_size(len(places))
    held = at.bounds(places)
    left_out += [
        LeftOut(what=str(place), reason="its leader does not report its start and end")
        for place in places
        if place not in held
    ]
    found = _found(at, asked, held, looked_up)
    steps = plan_of(
        asked.goal,
        [
            Known(
                place=place,
                committed=view.committed.get(place),
                start=start,
                end=end,
                found=found.get(place),
            )
            for place, (start, end) in held.items()
        ],
    )
    if not steps:
        reasons = "; ".join(f"{each.what}: {each.reason}" for each in left_out[:3])
        raise NoPlan(f"No partition is left that could be set. {reasons}")
    return replace(
        _plan(GroupChangeKind.RESET_OFFSETS, around, view),
        steps=tuple(map(planned, steps)),
        topic_ids={step.place.topic: topics[step.place.topic].id for step in steps},
        left_out=tuple(left_out),
        options=asked.options,
        targets=_targets(asked, steps=[step.place for step in steps], is_cut=bool(hidden)),
        refusal=_members_refusal(view, "resets"),
    )


def plan_offsets_deletion(at: Desk, around: Around, topic: str) -> GroupPlan:
    """Return the plan that deletes a group's offsets of one topic."""
    view = at.view(around.group)
    places = sorted(place for place in view.committed if place.topic == topic)
    if not places:
        raise NoPlan(
            f"Group {around.group} has committed nothing for topic {topic}, so nothing can be"
            " deleted. See which topics it has offsets of on its page."
        )
    _check_size(len(places))
    topics = at.topics([topic])
    refusal = ""
    if view.reads(topic):
        refusal = (
            f"Members of group {around.group} read topic {topic}, and Kafka keeps their offsets:"
            " stop the consumers that read it, then preview again."
        )
    return replace(
        _plan(GroupChangeKind.DELETE_OFFSETS, around, view),
        steps=tuple(gone(place, view) for place in places),
        topic_ids={topic: topics[topic].id if topic in topics else ""},
        topic=topic,
        refusal=refusal,
    )


def plan_deletion(at: Desk, around: Around) -> GroupPlan:
    """Return the plan that deletes a group."""
    view = at.view(around.group)
    if not view.is_there and not view.committed:
        raise NoPlan(
            f"There is no group {around.group}. Check the name; the list of groups shows what"
            " exists."
        )
    _check_size(len(view.committed))
    hidden = {place.topic for place in view.committed if not around.may_view(place.topic)}
    return replace(
        _plan(GroupChangeKind.DELETE_GROUP, around, view),
        steps=tuple(
            gone(place, view) for place in sorted(view.committed) if place.topic not in hidden
        ),
        left_out=(_hidden(hidden, GO_AS_WELL),) if hidden else (),
        digest=digest_of(view.committed),
        refusal=_members_refusal(view, "deletes"),
    )


def _plan(kind: GroupChangeKind, around: Around, view: GroupView) -> GroupPlan:
    """Return a plan without any changes yet."""
    return GroupPlan(
        kind=kind,
        cluster_id=around.cluster_id,
        group=around.group,
        state=view.state.value,
        in_words=view.in_words(),
        made_at_ms=around.now_ms,
        steps=(),
        topic_ids={},
    )


def _wanted(
    view: GroupView, around: Around, asked: AskedReset, looked_up: Mapping[Place, int] | None
) -> dict[str, tuple[int, ...]]:
    """Return the selected partitions by topic; an empty tuple means all of a topic."""
    if looked_up is not None:
        places = set(looked_up)
        if asked.source and not places:
            raise NoPlan(
                f"Group {asked.source} has committed nothing that could be taken over. Check the"
                " name of the group."
            )
        if asked.topics is not None:
            places = {place for place in places if _is_meant(place, asked.topics)}
            if not places:
                raise NoPlan(
                    f"{f'Group {asked.source}' if asked.source else 'The file'} says nothing of"
                    f" {', '.join(sorted(asked.topics))}. Choose other topics, or all."
                )
    elif asked.topics is not None:
        return dict(asked.topics)
    elif view.committed:
        places = set(view.committed)
    else:
        raise NoPlan(
            f"Group {around.group} has committed nothing, so “all topics” selects none. Name the "
            "topics to read."
        )
    by_topic: dict[str, list[int]] = {}
    for place in sorted(places):
        by_topic.setdefault(place.topic, []).append(place.partition)
    return {topic: tuple(indexes) for topic, indexes in by_topic.items()}


def _is_meant(place: Place, topics: Mapping[str, tuple[int, ...]]) -> bool:
    indexes = topics.get(place.topic)
    return indexes is not None and (not indexes or place.partition in indexes)


def _existing(
    view: GroupView,
    asked: AskedReset,
    wanted: Mapping[str, tuple[int, ...]],
    topics: Mapping[str, Topic],
) -> tuple[list[Place], list[LeftOut]]:
    """Return the partitions that can be set, and what is left out with the reason."""
    places: list[Place] = []
    left_out: list[LeftOut] = []
    for name, indexes in wanted.items():
        topic = topics.get(name)
        if topic is None:
            left_out.append(LeftOut(what=f"topic {name}", reason=_absent(view, name)))
            continue
        led = {each.index: each.leader is not None for each in topic.partitions}
        for index in indexes or sorted(led):
            place = Place(topic=name, partition=index)
            if reason := _unsettable(place, view, asked, led):
                left_out.append(LeftOut(what=str(place), reason=reason))
            else:
                places.append(place)
    return places, left_out


def _absent(view: GroupView, name: str) -> str:
    if any(place.topic == name for place in view.committed):
        return "it was deleted; the offsets that the group committed there are useless"
    return "the cluster has no such topic; check the name, or whether it was deleted"


def _unsettable(place: Place, view: GroupView, asked: AskedReset, led: Mapping[int, bool]) -> str:
    if place.partition not in led:
        return f"the topic has {len(led)} partitions, 0 to {len(led) - 1}"
    if not led[place.partition]:
        return "it has no leader at the moment, so its start and end are unknown"
    if asked.goal.kind is GoalKind.SHIFT and place not in view.committed:
        return "it has no committed offset to shift"
    return ""


def _found(
    at: Desk,
    asked: AskedReset,
    held: Mapping[Place, tuple[int, int]],
    looked_up: Mapping[Place, int] | None,
) -> Mapping[Place, int]:
    if looked_up is not None:
        return looked_up
    if asked.goal.kind is not GoalKind.TIME:
        return {}
    # A time after the last record gives the end, as does any position not there yet.
    return {
        place: held[place][1] if offset is None else offset
        for place, offset in at.at_time(held, asked.goal.value).items()
    }


def _hidden(topics: Collection[str], reason: str) -> LeftOut:
    count = len(topics)
    return LeftOut(
        what=f"{count} topic{'' if count == 1 else 's'} that you may not view", reason=reason
    )


def _targets(asked: AskedReset, *, steps: Sequence[Place], is_cut: bool) -> tuple[str, ...]:
    """Return the topic arguments of a command; none if a file names them."""
    if asked.file is not None or asked.source:
        return ()
    if asked.topics is None and not is_cut:
        return ("--all-topics",)
    words: dict[str, str] = {}
    for place in steps:
        named = (asked.topics or {}).get(place.topic, ())
        listed = ",".join(map(str, named))
        words[place.topic] = f"{place.topic}:{listed}" if listed else place.topic
    return tuple(word for topic in words.values() for word in ("--topic", topic))


def _members_refusal(view: GroupView, verb: str) -> str:
    if not view.has_members:
        return ""
    return (
        f"Group {view.name} {view.in_words()}, and Kafka {verb} only groups without members,"
        " because members would commit other offsets: stop its consumers, then preview again."
    )


def _check_size(count: int) -> None:
    if count > MAX_PLACES:
        raise NoPlan(
            f"That is about {count} partitions, and a plan holds {MAX_PLACES} at most. Name fewer"
            " topics and make several plans, or use the command `./samsa groups`."
        )
