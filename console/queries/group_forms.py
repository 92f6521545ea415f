"""Reads a group's topics and members for a form, as last reported.

Reads the collector's tables: no broker is asked before a plan is made.
"""

from dataclasses import dataclass
from typing import Final

from console import group_names
from console.queries.frame import Frame
from gateway.access.grants import Resource, Rights, decide
from gateway.access.operations import Kind, Operation
from gateway.kafka import shown_names

# Topics that are offered as choices; further ones have to be typed.
MAX_TOPICS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChoice:
    name: str
    partitions: int
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFormPage:
    """`hindrance` says why the brokers would refuse now; `denied` names the missing right."""

    frame: Frame
    group: str
    name: str  # of the group, for display
    address: str  # of its page
    denied: str
    hindrance: str
    topics: tuple[TopicChoice, ...]
    more_topics: int


def group_form_page(
    frame: Frame, rights: Rights, group: str, operation: Operation
) -> GroupFormPage:
    assert frame.shown is not None, "a form is about a group of a cluster"
    cluster_id = frame.shown.cluster_id
    resource = Resource(kind=Kind.GROUP, cluster=cluster_id, name=group)
    decision = decide(rights, operation, resource)
    topics = _topics(frame, rights, group)
    return GroupFormPage(
        frame=frame,
        group=group,
        name=shown_names.shown(group),
        address=group_names.link(cluster_id, group),
        denied="" if decision.is_allowed else decision.reason,
        hindrance=_hindrance(frame, group),
        topics=topics[:MAX_TOPICS],
        more_topics=max(0, len(topics) - MAX_TOPICS),
    )


def _topics(frame: Frame, rights: Rights, group: str) -> tuple[TopicChoice, ...]:
    """Return the topics in which a group has offsets and that the user may view, by name."""
    assert frame.shown is not None, "asked by `group_form_page`"
    if frame.live is None:
        return ()
    visible = rights.names(Operation.VIEW, cluster=frame.shown.cluster_id, kind=Kind.TOPIC)
    pairs = [pair for pair in frame.live.snapshot.pairs_of(group) if pair.topic in visible]
    return tuple(
        TopicChoice(name=pair.topic, partitions=pair.partitions, lag=pair.lag)
        for pair in sorted(pairs, key=lambda pair: pair.topic)
    )


def _hindrance(frame: Frame, group: str) -> str:
    row = None if frame.live is None else frame.live.snapshot.group(group)
    if row is None or not row.members:
        return ""
    has = "a member" if row.members == 1 else f"{row.members:,} members"
    return (
        f"The group has {has} at the moment, and Kafka changes only groups without: a preview"
        " shows what would be changed, and can be applied once the consumers have stopped."
    )
