"""What a change does, as texts before and after: secrets masked, long lists told in one line."""

from brokers.cluster.apply import ImageDraft
from brokers.cluster.changes import ConfigsChanged, TopicCreated
from brokers.cluster.effects import LISTED_PARTITIONS, effects_of
from brokers.cluster.image import PartitionState, ResourceType
from tests.brokers.cluster.test_plans import new_twin


class View(ImageDraft):
    """An image as the view of a decision, as far as effects ask it."""

    def colliding(self, name: str) -> str | None:
        raise AssertionError(name)

    def partition_count(self) -> int:
        raise AssertionError

    def next_producer_id(self) -> int:
        raise AssertionError


def test_value_of_an_unknown_key_is_masked() -> None:
    record = ConfigsChanged(
        ResourceType.TOPIC, "orders", (("retention.ms", "1"), ("some.password", "s3cret"))
    )

    (effect,) = effects_of(View(new_twin().image), [record])

    assert effect.after == {"retention.ms": "1", "some.password": "(hidden)"}


def test_replicas_of_many_partitions_are_summarized() -> None:
    states = tuple(
        PartitionState(replicas=(1 + index % 2,), isr=(1,), leader=1)
        for index in range(LISTED_PARTITIONS + 1)
    )

    (effect,) = effects_of(View(new_twin().image), [TopicCreated("new", bytes(16), states)])

    assert effect.after == {
        "topic id": "A" * 22,
        "partitions": str(LISTED_PARTITIONS + 1),
        "replication factor": "1",
        f"replicas of partitions 0 to {LISTED_PARTITIONS}": "on brokers 1, 2",
    }
