"""Where a topic's records are: its partitions, their leaders, and how those are reached."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db import connections

from brokers.cluster.image import Broker
from brokers.controlplane import selectors
from console.messages.question import MAX_PARTITIONS, BadQuestion, Question

# Addresses that a client is given to begin with; it learns the others from any of these.
MAX_BOOTSTRAP: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """A topic as the database has it. `leaders` has the partitions whose leader serves."""

    topic: str
    bootstrap: str
    leaders: Mapping[int, Broker]
    # Partitions that cannot be read, each with the sentence that says why.
    dark: Mapping[int, str]

    @property
    def partitions(self) -> list[int]:
        return sorted(self.leaders)


class NoSuchTopic(LookupError):
    """The database has no such cluster or topic."""


def places_of(question: Question) -> Places:
    """Ask the database, in a thread."""
    try:
        return _places(question)
    finally:
        # There is no request whose end would do it, and which thread comes next is not known.
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
