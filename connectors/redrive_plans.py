"""The plan of a run that sends dead letters again, as shown, stored and sealed.

Pure. Spans end at the last planned letter, so later ones are not sent unseen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connectors.runtime.letters import Addressee, Choice, Destination, Unsent
from connectors.runtime.task_settings import Reading
from gateway.kafka.values import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherGroup:
    """A group that reads a destination topic, and so would read the letters again."""

    name: str
    lag: int
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RedrivePlan:
    """Which letters to send where, and the facts on which this depends."""

    id: str
    cluster: str
    name: str
    # The generation of the connector's config.
    generation: int
    dead_topic: str
    destination: Destination
    choice: Choice
    to: Addressee
    # Ids of the dead letter topic, and of the existing destination topics.
    topic_ids: Mapping[str, str]
    chosen: int = 0
    chosen_bytes: int = 0
    looked: int = 0
    # Letters after the end of the spans, beyond the limit of one run.
    left: int = 0
    # Topic → number of letters to send there.
    targets: Mapping[str, int] = field(default_factory=dict)
    unsent: Mapping[Unsent, int] = field(default_factory=dict)
    groups: tuple[OtherGroup, ...] = ()
    # The number of groups that the author may not see.
    hidden_groups: int = 0

    @property
    def makes_topic(self) -> bool:
        """Return whether the run creates the retry topic first."""
        is_retry = self.destination is Destination.RETRY
        return is_retry and any(topic not in self.topic_ids for topic in self.targets)

    @property
    def begins(self) -> dict[int, int]:
        return {span.partition: span.start for span in self.choice.spans}


def plain(plan: RedrivePlan) -> dict[str, Any]:
    """Return a plan as JSON."""
    reading = plan.to.reading
    return {
        "id": plan.id,
        "cluster": plan.cluster,
        "name": plan.name,
        "generation": plan.generation,
        "dead_topic": plan.dead_topic,
        "destination": plan.destination.value,
        "spans": [[span.partition, span.start, span.end] for span in plan.choice.spans],
        "picked": sorted([list(place) for place in plan.choice.picked]),
        "exception": plan.choice.exception,
        "stage": plan.choice.stage,
        "topics": None if reading is None else list(reading.topics),
        "pattern": "" if reading is None else reading.pattern,
        "has_unnamed": plan.to.has_unnamed,
        "topic_ids": dict(plan.topic_ids),
        "chosen": plan.chosen,
        "chosen_bytes": plan.chosen_bytes,
        "looked": plan.looked,
        "left": plan.left,
        "targets": dict(plan.targets),
        "unsent": {reason.name: count for reason, count in plan.unsent.items()},
        "groups": [[group.name, group.lag, group.members] for group in plan.groups],
        "hidden_groups": plan.hidden_groups,
    }


def plan_of(told: Mapping[str, Any]) -> RedrivePlan:
    """Parse the output of `plain`."""
    topics = told["topics"]
    reading = None if topics is None else Reading(topics=tuple(topics), pattern=told["pattern"])
    return RedrivePlan(
        id=told["id"],
        cluster=told["cluster"],
        name=told["name"],
        generation=told["generation"],
        dead_topic=told["dead_topic"],
        destination=Destination(told["destination"]),
        choice=Choice(
            spans=tuple(
                Span(partition=partition, start=start, end=end)
                for partition, start, end in told["spans"]
            ),
            picked=frozenset((partition, offset) for partition, offset in told["picked"]),
            exception=told["exception"],
            stage=told["stage"],
        ),
        to=Addressee(connector=told["name"], reading=reading, has_unnamed=told["has_unnamed"]),
        topic_ids=told["topic_ids"],
        chosen=told["chosen"],
        chosen_bytes=told["chosen_bytes"],
        looked=told["looked"],
        left=told["left"],
        targets=told["targets"],
        unsent={Unsent[name]: count for name, count in told["unsent"].items()},
        groups=tuple(
            OtherGroup(name=name, lag=lag, members=members) for name, lag, members in told["groups"]
        ),
    )
