"""The plan of a run that sends dead letters again, as shown, stored and sealed.

Pure. Spans end where the topic ended at the time of the plan, so later letters are not sent.
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
    # Letters of the spans that were not looked at: the run does, and the counts are without them.
    uncounted: int = 0
    # The cause of the letters in words, if they were chosen by it.
    cause_text: str = ""
    # Why the connector does not read the letters soon, or fails again; empty if it does.
    caution: str = ""
    # Topic → number of counted letters to send there; no letter goes to another topic.
    targets: Mapping[str, int] = field(default_factory=dict)
    unsent: Mapping[Unsent, int] = field(default_factory=dict)
    groups: tuple[OtherGroup, ...] = ()
    # The number of groups that the author may not see.
    hidden_groups: int = 0
    # When the plan was made, for its page.
    made_at_ms: int = 0

    @property
    def makes_topic(self) -> bool:
        """Return whether the run creates the retry topic first."""
        is_retry = self.destination is Destination.RETRY
        return is_retry and any(topic not in self.topic_ids for topic in self.targets)

    @property
    def is_startable(self) -> bool:
        """Return whether there is something to send, as far as the plan has looked."""
        # Letters that were not looked at go to the retry topic, whatever their first topic was.
        is_retry = self.destination is Destination.RETRY
        return bool(self.chosen or (self.uncounted and is_retry))

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
        "cause": plan.choice.cause,
        "cause_text": plan.cause_text,
        "caution": plan.caution,
        "topics": None if reading is None else list(reading.topics),
        "pattern": "" if reading is None else reading.pattern,
        "has_unnamed": plan.to.has_unnamed,
        "topic_ids": dict(plan.topic_ids),
        "chosen": plan.chosen,
        "chosen_bytes": plan.chosen_bytes,
        "looked": plan.looked,
        "uncounted": plan.uncounted,
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
            # Runs of a former release have neither of these.
            cause=told.get("cause", ""),
        ),
        to=Addressee(connector=told["name"], reading=reading, has_unnamed=told["has_unnamed"]),
        topic_ids=told["topic_ids"],
        chosen=told["chosen"],
        chosen_bytes=told["chosen_bytes"],
        looked=told["looked"],
        uncounted=told.get("uncounted", 0),
        cause_text=told.get("cause_text", ""),
        caution=told.get("caution", ""),
        targets=told["targets"],
        unsent={Unsent[name]: count for name, count in told["unsent"].items()},
        groups=tuple(
            OtherGroup(name=name, lag=lag, members=members) for name, lag, members in told["groups"]
        ),
    )
