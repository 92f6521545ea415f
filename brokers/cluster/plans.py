"""Plans a change before it is made: its exact calls, its effects, and the versions it expects.

Pure. Made by the rules of `decisions`, on one moment of the cluster. Choices of the rules (replica
placement, the id of a name) are fixed in the plan's proposals, so that the applied change is the
one that was shown. The ids of the proposals are the plan's: applied twice, it is done once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from brokers.cluster import change_bounds, levels
from brokers.cluster.changes import PartitionsAdded, Record, TopicCreated, TopicRemoved
from brokers.cluster.decisions import Decision, View, decide
from brokers.cluster.effects import TOPIC_ID, Effect, EffectKind, effects_of
from brokers.cluster.image import PartitionState, ResourceType
from brokers.cluster.implications import implications_of
from brokers.cluster.proposals import (
    Action,
    AllocateProducerIds,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Expectation,
    Proposal,
    Subject,
)
from brokers.protocol.errors import ErrorCode, KafkaError

# Steps of one plan: as many as a person can read before agreeing to them.
MAX_STEPS: Final = 100
# How many of the moved objects a refusal lists.
NAMED: Final = 3


class PlanView(View, Protocol):
    def follow(self, records: Iterable[Record]) -> None:
        """Answer from now on as if the records were written."""
        ...


# The current versions of objects; a missing object has none.
Versions = Callable[[Sequence[tuple[Subject, str]]], Mapping[tuple[Subject, str], int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One action of a plan. An error in it makes the whole plan impossible."""

    asked: Action
    # The action with the choices of the rules.
    call: Action
    effects: tuple[Effect, ...] = ()
    implications: tuple[str, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a preview. `proposals` are applied together: all of them, or none."""

    cluster_id: str
    version: int  # of the cluster, when the plan was made
    made_at_ms: int
    steps: tuple[Step, ...]
    expects: tuple[Expectation, ...] = ()
    proposals: tuple[Proposal, ...] = ()

    @property
    def is_refused(self) -> bool:
        return any(step.error for step in self.steps)

    @property
    def changes_nothing(self) -> bool:
        return not any(step.effects for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """An object that a plan expects and whose version has changed; `found` is 0 if it is gone."""

    subject: Subject
    name: str
    expected: int
    found: int


def make_plan(
    view: PlanView,
    actions: Sequence[Action],
    *,
    versions: Versions,
    level: int,
    cluster_id: str,
    version: int,
    now_ms: int,
    new_id: Callable[[], bytes],
) -> Plan:
    """Return the effects of the actions, one after the other; KafkaError if no plan is possible."""
    levels.check_expects(level)
    if not 0 < len(actions) <= MAX_STEPS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{len(actions)} changes in one plan, 1 to {MAX_STEPS} are allowed: make several plans",
        )
    rests: dict[tuple[Subject, str], None] = {}
    steps: list[Step] = []
    records: list[Record] = []
    for action in actions:
        try:
            decision = decide(view, action, now_ms=now_ms, new_topic_id=new_id)
            change_bounds.bounded([*records, *decision.records])
        except KafkaError as refusal:
            refused = Step(asked=action, call=action, error=refusal.code, message=refusal.message)
            steps.append(refused)
            continue
        steps.append(_step(view, action, decision))
        rests |= dict.fromkeys(_rests_on(action, decision.records))
        records += decision.records
        view.follow(decision.records)
    found = versions(list(rests))
    expects = tuple(
        Expectation(subject=subject, name=name, version=found.get((subject, name), 0))
        for subject, name in rests
    )
    plan = Plan(
        cluster_id=cluster_id,
        version=version,
        made_at_ms=now_ms,
        steps=tuple(steps),
        expects=expects,
    )
    if plan.is_refused:
        return plan
    proposals = [
        Proposal(id=new_id(), action=step.call, actor="", expects=expects) for step in steps
    ]
    return replace(plan, proposals=tuple(proposals))


def moved(
    expects: Iterable[Expectation], found: Mapping[tuple[Subject, str], int]
) -> tuple[Moved, ...]:
    """Return the objects whose versions differ from the expected ones."""
    return tuple(
        Moved(
            subject=each.subject,
            name=each.name,
            expected=each.version,
            found=found.get((each.subject, each.name), 0),
        )
        for each in expects
        if found.get((each.subject, each.name), 0) != each.version
    )


def outdated(what: Sequence[Moved], causes: Mapping[int, str]) -> KafkaError:
    """Return the refusal of a proposal whose expectations no longer hold.

    `causes` describe the changes to these versions, as far as they are still known.
    """
    named = "; ".join(_moved_in_words(each, causes) for each in what[:NAMED])
    more = f"; and {len(what) - NAMED} more" if len(what) > NAMED else ""
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"nothing was changed, because the state has changed since this was planned: {named}{more};"
        " look at the new state and plan again",
    )


WORDS: Final = {
    Subject.TOPIC: "topic",
    Subject.TOPIC_CONFIGS: "the configuration of topic",
    Subject.BROKER: "broker",
    Subject.BROKER_CONFIGS: "the configuration of broker",
}


def in_words(subject: Subject, name: str) -> str:
    """Return a versioned object's name for people."""
    if subject is Subject.BROKER_CONFIGS and not name:
        return "the default configuration of all brokers"
    return f"{WORDS[subject]} {name}"


def _moved_in_words(each: Moved, causes: Mapping[int, str]) -> str:
    what = in_words(each.subject, each.name)
    if not each.found and each.subject is Subject.TOPIC:
        return f"{what} (version {each.expected}) is gone"
    cause = causes.get(each.found)
    now = f"at version {each.found}" + (f" ({cause})" if cause else "")
    if not each.expected and each.subject is Subject.TOPIC:
        return f"{what} exists now, {now}"
    return f"{what} was at version {each.expected} and is {now}"


def _step(view: View, action: Action, decision: Decision) -> Step:
    created = next((each for each in decision.records if isinstance(each, TopicCreated)), None)
    sentences = [
        sentence
        for record in decision.records
        for sentence in implications_of(view, record, created=created)
    ]
    return Step(
        asked=action,
        call=_fixed(action, decision.records),
        effects=tuple(map(_without_id, effects_of(view, decision.records))),
        implications=tuple(dict.fromkeys(sentences)),
    )


def _without_id(effect: Effect) -> Effect:
    """Drop the id of a new topic, which it only gets when the plan is applied."""
    if effect.kind is not EffectKind.CREATE_TOPIC:
        return effect
    after = {key: value for key, value in effect.after.items() if key != TOPIC_ID}
    return replace(effect, after=after)


def _fixed(action: Action, records: Sequence[Record]) -> Action:
    """Return the action with the choices made for it."""
    match action, records[0] if records else None:
        case CreateTopic(), TopicCreated(partitions=states):
            return replace(
                action, partitions=-1, replication_factor=-1, assignments=_replicas(states)
            )
        case CreatePartitions(), PartitionsAdded(partitions=states):
            return replace(action, assignments=_replicas(states))
        case DeleteTopic(), TopicRemoved(name=name, topic_id=topic_id):
            # By its id; the name is only for display.
            return DeleteTopic(name=name, topic_id=topic_id)
        case _:
            return action


def _replicas(states: Iterable[PartitionState]) -> tuple[tuple[int, ...], ...]:
    return tuple(state.replicas for state in states)


def _rests_on(action: Action, records: Sequence[Record]) -> Iterator[tuple[Subject, str]]:
    match action:
        case CreateTopic() | CreatePartitions():
            yield Subject.TOPIC, action.name
            yield from ((Subject.BROKER, str(broker)) for broker in _placed_on(records))
        case DeleteTopic():
            for record in records:
                if isinstance(record, TopicRemoved):
                    yield Subject.TOPIC, record.name
                    yield Subject.TOPIC_CONFIGS, record.name
        case AlterConfigs(resource_type=ResourceType.TOPIC):
            yield Subject.TOPIC, action.name
            yield Subject.TOPIC_CONFIGS, action.name
        case AlterConfigs():
            yield Subject.BROKER_CONFIGS, action.name
        case AllocateProducerIds():
            raise AssertionError("blocks of producer ids are never planned")


def _placed_on(records: Iterable[Record]) -> list[int]:
    return sorted(
        {
            broker
            for record in records
            if isinstance(record, TopicCreated | PartitionsAdded)
            for state in record.partitions
            for broker in state.replicas
        }
    )
