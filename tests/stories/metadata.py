"""Commands of stories about the cluster's metadata: proposals, changes, images and plans.

The store is the one in memory, which decides as the database's does. `follow` is what one broker
knows of it: an image, which advances by one change after the other.
"""

from collections.abc import Iterator
from pathlib import Path

from brokers.cluster import levels
from brokers.cluster.apply import apply
from brokers.cluster.changes import (
    BrokerChanged,
    BrokerRemoved,
    Change,
    ConfigsChanged,
    PartitionChanged,
    PartitionsAdded,
    Record,
    TopicCreated,
    TopicRemoved,
)
from brokers.cluster.image import ClusterImage, ResourceType
from brokers.cluster.plans import Plan
from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    ConfigEdit,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Outcome,
    Proposal,
)
from brokers.cluster.store import Registration
from console.plans.commands import of_step
from tests.fakes.twin import Twin
from tests.stories.script import Commands, StoryError, counted

CLUSTER = "cluster-of-a-story"


def commands(_folder: Path) -> Commands:
    stage = Metadata()
    return {
        "register": stage.register,
        "fence": stage.fence,
        "unfence": stage.unfence,
        "create-topic": stage.create_topic,
        "add-partitions": stage.add_partitions,
        "set-configs": stage.set_configs,
        "delete-topic": stage.delete_topic,
        "repeat": stage.repeat,
        "plan": stage.plan,
        "apply-plan": stage.apply_plan,
        "follow": stage.follow,
        "image": stage.image,
        "lose-changes": stage.lose_changes,
    }


class Metadata:
    """The state of one story."""

    def __init__(self) -> None:
        self._store = Twin(cluster_id=CLUSTER)
        self._image = ClusterImage(cluster_id=CLUSTER)
        self._proposals = 0
        self._last: Proposal | None = None
        self._plan: Plan | None = None

    # -- brokers ---------------------------------------------------------------------------------

    def register(self, broker: int) -> Iterator[str]:
        """Register a broker, as its start does; it serves no clients yet."""
        registered = self._store.begin_session(
            Registration(
                incarnation=broker.to_bytes(16, "big"),
                host=f"host-{broker}",
                port=9092,
                broker_id=broker,
                metadata_level=levels.KNOWN_LEVEL,
            )
        )
        yield f"broker {broker} has epoch {registered.broker_epoch}, and is fenced"

    def fence(self, broker: int) -> Iterator[str]:
        self._store.set_fenced(broker, is_fenced=True)
        yield f"version {self._store.image.version}"

    def unfence(self, broker: int) -> Iterator[str]:
        self._store.set_fenced(broker, is_fenced=False)
        yield f"version {self._store.image.version}"

    # -- proposals -------------------------------------------------------------------------------

    def create_topic(self, name: str, *configs: str, partitions: int = -1) -> Iterator[str]:
        yield from self._propose(created(name, configs, partitions))

    def add_partitions(self, name: str, count: int) -> Iterator[str]:
        yield from self._propose(CreatePartitions(name=name, count=count))

    def set_configs(self, name: str, *configs: str) -> Iterator[str]:
        yield from self._propose(configured(name, configs))

    def delete_topic(self, name: str) -> Iterator[str]:
        yield from self._propose(DeleteTopic(name=name))

    def repeat(self) -> Iterator[str]:
        """Send the last proposal again, as a broker does whose answer was lost."""
        assert self._last is not None, "a story proposes something before it repeats it"
        yield from self._send(self._last)

    def _propose(self, action: Action) -> Iterator[str]:
        self._proposals += 1
        name = self._proposals.to_bytes(16, "big")
        self._last = Proposal(id=name, action=action, actor="User:alice")
        yield from self._send(self._last)

    def _send(self, *proposals: Proposal) -> Iterator[str]:
        before = self._store.image.version
        yield from dict.fromkeys(map(_outcome, self._store.decide(proposals)))
        if before == self._store.image.version:
            yield f"the version stays {before}"

    # -- plans -----------------------------------------------------------------------------------

    def plan(self, what: str, name: str, *rest: str, partitions: int = -1) -> Iterator[str]:
        """Show what a change would do; `what` is one of the proposals above."""
        match what:
            case "create-topic":
                action: Action = created(name, rest, partitions)
            case "add-partitions":
                action = CreatePartitions(name=name, count=partitions)
            case "set-configs":
                action = configured(name, rest)
            case "delete-topic":
                action = DeleteTopic(name=name)
            case _:
                raise StoryError(f"{what!r} cannot be planned")
        self._plan = self._store.preview([action])
        (step,) = self._plan.steps
        if step.error:
            yield f"{step.error.name}: {step.message}"
            return
        for effect in step.effects:
            yield f"{effect.kind.value} {effect.name}"
            for key in sorted({*effect.before, *effect.after}):
                before, after = effect.before.get(key, "-"), effect.after.get(key, "-")
                if before != after and key != "topic id":
                    yield f"  {key}: {before} -> {after}"
        yield from (f"consequence: {sentence}" for sentence in step.implications)
        yield f"command: {next(iter(of_step(step, bootstrap='localhost:9092')), None)}"

    def apply_plan(self) -> Iterator[str]:
        """Apply exactly what was shown, if nothing that it is based on has changed since."""
        assert self._plan is not None, "a story plans before it applies"
        yield from self._send(*self._plan.proposals)

    # -- images ----------------------------------------------------------------------------------

    def follow(self) -> Iterator[str]:
        """Have a broker apply all changes that it does not know yet."""
        while (update := self._store.next_update(self._image.position)) is not None:
            if isinstance(update, Change):
                self._image = apply(self._image, update)
                said = "; ".join(self._record(record) for record in update.records)
                yield f"version {update.position.version}: {said}"
            else:
                self._image = update
                yield f"version {update.version}: the whole image"
            assert update is not self._store.image or self._image == update
        assert self._image == self._store.image, "an image is what its changes made of it"
        yield f"the broker knows version {self._image.version}"

    def image(self) -> Iterator[str]:
        """Show the metadata that a broker has."""
        image = self._image
        brokers = [
            f"{broker.id}{' (fenced)' if broker.is_fenced else ''}"
            for broker in image.brokers.values()
        ]
        yield f"brokers {', '.join(brokers)}; controller {image.controller_id}"
        for name, topic in sorted(image.topics.items()):
            leaders = " ".join(str(state.leader) for state in topic.partitions)
            configs = image.configs_of(ResourceType.TOPIC, name)
            more = "".join(f", {key}={value}" for key, value in sorted(configs.items()))
            yield f"{name}: partitions led by {leaders}{more}"
        for deleted in image.deleted.values():
            yield f"{deleted.name}: deleted by version {deleted.version}"

    def lose_changes(self) -> Iterator[str]:
        """Drop the changes that the store keeps for brokers that are behind."""
        self._store.forget_changes()
        yield "the store keeps no changes"

    def _record(self, record: Record) -> str:
        match record:
            case BrokerChanged(broker=broker):
                return f"broker {broker.id} is {'fenced' if broker.is_fenced else 'unfenced'}"
            case BrokerRemoved(broker_id=number):
                return f"broker {number} is removed"
            case TopicCreated(name=name, partitions=partitions):
                return f"topic {name} is created with {counted(len(partitions), 'partition')}"
            case TopicRemoved(name=name):
                return f"topic {name} is deleted"
            case PartitionsAdded(topic_id=topic_id, first_index=first, partitions=new):
                topic = self._image.names[topic_id]
                return f"topic {topic} has {first + len(new)} partitions"
            case PartitionChanged(topic_id=topic_id, index=index):
                return f"partition {self._image.names[topic_id]}-{index} is changed"
            case ConfigsChanged(name=name, configs=configs):
                said = ", ".join(f"{key}={value}" for key, value in configs)
                return f"configs of {name}: {said or 'none'}"


def created(name: str, configs: tuple[str, ...], partitions: int) -> CreateTopic:
    pairs = tuple((key, value) for key, _, value in (each.partition("=") for each in configs))
    return CreateTopic(name=name, partitions=partitions, configs=pairs)


def configured(name: str, configs: tuple[str, ...]) -> AlterConfigs:
    """Return the edits: `KEY=VALUE` sets a config, `KEY=` restores its default."""
    edits = []
    for each in configs:
        key, _, value = each.partition("=")
        operation = ConfigOperation.SET if value else ConfigOperation.DELETE
        edits.append(ConfigEdit(key=key, operation=operation, value=value or None))
    return AlterConfigs(resource_type=ResourceType.TOPIC, name=name, edits=tuple(edits))


def _outcome(outcome: Outcome) -> str:
    if outcome.error:
        return f"{outcome.error.name}: {outcome.message}"
    return f"accepted, version {outcome.version}"
