"""How an image moves on: each record's effect, and what is shared with the image before."""

from collections.abc import Iterable

import pytest

from brokers.cluster import apply as apply_module
from brokers.cluster.apply import ImageDraft, apply
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
from brokers.cluster.image import (
    NO_BROKER,
    Broker,
    ClusterImage,
    DeletedTopic,
    PartitionState,
    Position,
    ResourceType,
    Topic,
)

ORDERS = bytes([1] * 16)
RETURNS = bytes([2] * 16)
TOPIC = ResourceType.TOPIC


def state(broker: int = 1, epoch: int = 0) -> PartitionState:
    return PartitionState(replicas=(broker,), isr=(broker,), leader=broker, leader_epoch=epoch)


def after(image: ClusterImage, *records: Record) -> ClusterImage:
    version = image.version + 1
    return apply(image, Change(Position(version, version.to_bytes(16, "big")), records))


def image_of(records: Iterable[Record] = ()) -> ClusterImage:
    return after(ClusterImage(cluster_id="c"), *records)


@pytest.fixture
def image() -> ClusterImage:
    return image_of(
        [
            BrokerChanged(Broker(id=1, epoch=1, host="a", port=1, is_fenced=False)),
            BrokerChanged(Broker(id=2, epoch=1, host="b", port=2)),
            TopicCreated("orders", ORDERS, (state(), state(2))),
            TopicCreated("returns", RETURNS, (state(),)),
            ConfigsChanged(TOPIC, "orders", (("retention.ms", "5"),)),
        ]
    )


def test_a_change_leads_to_its_position(image: ClusterImage) -> None:
    following = after(image)

    assert following.position == Position(2, (2).to_bytes(16, "big"))
    assert following.cluster_id == "c"


def test_a_change_that_does_not_follow_is_a_bug(image: ClusterImage) -> None:
    for version in (image.version, image.version + 2):
        with pytest.raises(AssertionError, match="does not follow"):
            apply(image, Change(Position(version, bytes(16)), ()))


def test_the_image_before_stays_what_it_was(image: ClusterImage) -> None:
    again = image_of(
        [
            BrokerChanged(image.brokers[1]),
            BrokerChanged(image.brokers[2]),
            TopicCreated("orders", ORDERS, (state(), state(2))),
            TopicCreated("returns", RETURNS, (state(),)),
            ConfigsChanged(TOPIC, "orders", (("retention.ms", "5"),)),
        ]
    )

    after(
        image,
        BrokerRemoved(1),
        TopicRemoved("orders", ORDERS),
        PartitionsAdded(RETURNS, 1, (state(),)),
        ConfigsChanged(TOPIC, "returns", (("retention.ms", "6"),)),
    )

    assert image == again


def test_unchanged_parts_of_an_image_are_shared(image: ClusterImage) -> None:
    following = after(image, BrokerRemoved(2))

    assert following.topics is image.topics
    assert following.names is image.names
    assert following.configs is image.configs
    assert following.deleted is image.deleted
    following = after(image, PartitionChanged(ORDERS, 0, state(2, 1)))
    assert following.brokers is image.brokers
    assert following.topics["returns"] is image.topics["returns"]


def test_the_lowest_broker_that_is_not_fenced_is_the_controller(image: ClusterImage) -> None:
    assert image.controller_id == 1
    assert after(image, BrokerRemoved(1)).controller_id == NO_BROKER


def test_a_topic_created_can_be_found_by_name_and_id(image: ClusterImage) -> None:
    topic = image.topics["orders"]

    assert topic == Topic(name="orders", id=ORDERS, partitions=(state(), state(2)), version=1)
    assert image.topic_by_id(ORDERS) is topic
    assert image.topic_by_id(bytes(16)) is None


def test_partitions_are_added_behind_those_that_are_there(image: ClusterImage) -> None:
    record = PartitionsAdded(ORDERS, 2, (state(3),))

    topic = after(image, record).topics["orders"]

    assert topic.partitions == (state(), state(2), state(3))
    assert topic.version == 2
    # The same record again does no harm.
    assert after(after(image, record), record).topics["orders"].partitions == topic.partitions


def test_partitions_that_leave_a_gap_are_a_bug(image: ClusterImage) -> None:
    with pytest.raises(AssertionError, match="has 2 partitions when those from 3 come"):
        after(image, PartitionsAdded(ORDERS, 3, (state(),)))


def test_a_partition_is_changed_alone(image: ClusterImage) -> None:
    topic = after(image, PartitionChanged(ORDERS, 1, state(1, 5))).topics["orders"]

    assert topic.partitions == (state(), state(1, 5))


def test_a_partition_that_is_not_there_is_a_bug(image: ClusterImage) -> None:
    with pytest.raises(AssertionError, match="no partition 2"):
        after(image, PartitionChanged(ORDERS, 2, state()))
    with pytest.raises(AssertionError, match="no topic"):
        after(image, PartitionChanged(bytes(16), 0, state()))


def test_a_topic_removed_is_remembered_and_its_configuration_goes(image: ClusterImage) -> None:
    following = after(image, TopicRemoved("orders", ORDERS))

    assert "orders" not in following.topics
    assert following.topic_by_id(ORDERS) is None
    assert not following.configs_of(TOPIC, "orders")
    assert following.deleted == {ORDERS: DeletedTopic(name="orders", id=ORDERS, version=2)}


def test_the_oldest_of_many_deleted_topics_is_forgotten(
    image: ClusterImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply_module, "MAX_DELETED", 1)

    following = after(image, TopicRemoved("orders", ORDERS), TopicRemoved("returns", RETURNS))

    assert list(following.deleted) == [RETURNS]


def test_topic_may_be_recreated_in_one_change(image: ClusterImage) -> None:
    new = bytes([3] * 16)

    following = after(
        image, TopicRemoved("orders", ORDERS), TopicCreated("orders", new, (state(),))
    )

    assert following.topics["orders"].id == new
    assert ORDERS in following.deleted


def test_configurations_are_replaced_whole(image: ClusterImage) -> None:
    following = after(image, ConfigsChanged(TOPIC, "orders", (("segment.ms", "6"),)))

    assert dict(following.configs_of(TOPIC, "orders")) == {"segment.ms": "6"}
    assert (TOPIC, "orders") not in after(image, ConfigsChanged(TOPIC, "orders", ())).configs


def test_a_draft_answers_for_what_it_has_taken(image: ClusterImage) -> None:
    draft = ImageDraft(image)
    draft.add(TopicRemoved("orders", ORDERS), 2)
    draft.add(BrokerRemoved(2), 2)
    draft.add(ConfigsChanged(TOPIC, "returns", (("segment.ms", "6"),)), 2)

    assert draft.topic("orders") is None
    assert draft.topic_by_id(ORDERS) is None
    assert draft.topic_by_id(RETURNS) == image.topics["returns"]
    assert [broker.id for broker in draft.brokers()] == [1]
    assert draft.configs_of(TOPIC, "returns") == {"segment.ms": "6"}
