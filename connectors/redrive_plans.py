"""The plan of a run that sends dead letters again, as shown, stored and sealed.

Pure. Spans end where the topic ended at the time of the plan, so later letters are not sent. Rows
of runs outlast releases: fields are added with a default, never renamed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from connectors.runtime.letters import Addressee, Choice, Destination, Unsent


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


def stored(plan: RedrivePlan) -> Any:
    """Return a plan as JSON, for the row of its run; its keys are those of a seal."""
    return msgspec.to_builtins(plan, str_keys=True, order="deterministic")


def plan_in(row: Any) -> RedrivePlan:
    """Parse the output of `stored`, also of an earlier release that lacks the newer fields."""
    return msgspec.convert(row, RedrivePlan)
