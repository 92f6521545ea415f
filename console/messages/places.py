"""Locates a topic's records: its partitions, their leaders, and bootstrap addresses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db import connections

from brokers.cluster.image import Broker
from brokers.controlplane import selectors
from console.messages.question import MAX_PARTITIONS, BadQuestion, Question

# Bootstrap addresses of a client; it learns the others from any of these.
MAX_BOOTSTRAP: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """A topic in the database. `leaders` has the partitions whose leader is in service."""

    topic: str
    bootstrap: str
    leaders: Mapping[int, Broker]
    # Partitions that cannot be read, each with the reason in a sentence.
    dark: Mapping[int, str]

    @property
    def partitions(self) -> list[int]:
        return sorted(self.leaders)


class NoSuchTopic(LookupError):
    """The database has no such cluster or topic."""


def places_of(question: Question) -> Places:
    """Query the database, in a thread."""
    try:
        return _places(question)
    finally:
        # No request ends in this thread, and the next call may run in another one.
        connections.close_all()


def _places(question: Question) -> Places:
    topic = selectors.topic(cluster_id=question.cluster, name=question.topic)
    if topic is None:
        raise NoSuchTopic(f"there is no topic {question.topic!r} in this cluster")
    brokers = {broker.id: broker for broker in selectors.brokers(cluster_id=question.cluster)}
    known = range(len(topic.partitions))
    wanted = question.partitions or tuple(known)
    for index in wanted:
        if index not in known:
            raise BadQuestion(
                f"{question.topic} has no partition {index}",
                f"name partitions of 0 to {len(known) - 1}",
            )
    if len(wanted) > MAX_PARTITIONS:
        raise BadQuestion(
            f"{question.topic} has {len(wanted):,} partitions",
            f"name {MAX_PARTITIONS:,} of them at most at a time",
        )
    leaders, dark = {}, {}
    for index in wanted:
        leader = brokers.get(topic.partitions[index].leader)
        if leader is None or leader.is_fenced:
            named = "no broker" if leader is None else f"broker {leader.id}, which is away,"
            dark[index] = f"{named} leads partition {index} of {question.topic}"
        else:
            leaders[index] = leader
    serving = [broker for broker in brokers.values() if not broker.is_fenced]
    return Places(
        topic=question.topic,
        bootstrap=",".join(f"{one.host}:{one.port}" for one in serving[:MAX_BOOTSTRAP]),
        leaders=leaders,
        dark=dark,
    )
