"""Topics of Metadata that are kept encoded: the same bytes as without, and never stale."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest

from brokers.cluster.image import ClusterImage, Topic
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from brokers.server.metadata_cache import (
    ALL_TOPIC_OPERATIONS,
    LAYOUTS,
    MAX_LAYOUTS,
    NOT_ASKED,
    MetadataCache,
    describe_topic,
    encode_answer,
)
from tests.builders.clusters import broker, image, topic

VERSIONS = range(MetadataResponse.VERSIONS[0], MetadataResponse.VERSIONS[1] + 1)
NAMES = ("orders", "payments", "__consumer_offsets")


def cluster() -> ClusterImage:
    topics = [topic(name, partitions=3, replicas=(1, 2), leader_epoch=4) for name in NAMES]
    return image(topics, brokers=[broker(1), broker(2, is_fenced=True)])


def kept(
    cache: MetadataCache, source: ClusterImage, version: int, operations: int = NOT_ASKED
) -> Sequence[bytes]:
    return [
        cache.topic(source, each, version, operations=operations) for each in source.topics.values()
    ]


def decoded(topics: Sequence[bytes], version: int) -> MetadataResponse:
    body = encode_answer(MetadataResponse(), version, topics)
    return codec(MetadataResponse, version).decode(body)


def changed(source: ClusterImage, one: Topic) -> ClusterImage:
    """The image after a change of one topic, as changes make it: all else is shared."""
    return replace(source, topics=MappingProxyType({**source.topics, one.name: one}))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_is_the_same_bytes_as_one_encoded_whole(version: int) -> None:
    source = cluster()
    operations = ALL_TOPIC_OPERATIONS if version >= 8 else NOT_ASKED
    cache = MetadataCache()
    frame = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="h", port=9092)],
        cluster_id="c",
        controller_id=1,
    )
    whole = frame.copy()
    whole.topics = [
        describe_topic(each, cache.alive(source), version, operations)
        for each in source.topics.values()
    ]

    body = encode_answer(frame, version, kept(cache, source, version, operations))

    assert body == b"".join(codec(MetadataResponse, version).encode(whole))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_without_topics_is_whole(version: int) -> None:
    body = encode_answer(MetadataResponse(), version, [])

    assert codec(MetadataResponse, version).decode(body).topics == []


def test_more_topics_than_one_length_byte_can_count_are_counted() -> None:
    source = image(topic(f"t{number}") for number in range(300))

    answer = decoded(kept(MetadataCache(), source, 12), 12)

    assert [each.name for each in answer.topics] == list(source.topics)


def test_a_topic_is_encoded_once_for_all_versions_that_write_it_alike() -> None:
    source = cluster()
    cache = MetadataCache()

    tens = kept(cache, source, 10)
    thirteens = kept(cache, source, 13)

    assert all(one is other for one, other in zip(tens, thirteens, strict=True))


def test_a_change_of_one_topic_leaves_the_others_encoded() -> None:
    source = cluster()
    cache = MetadataCache()
    before = kept(cache, source, 12)

    after = kept(cache, changed(source, topic("orders", partitions=4)), 12)

    assert len(decoded(after[:1], 12).topics[0].partitions) == 4
    assert after[1] is before[1]
    assert after[2] is before[2]


def test_topics_that_were_never_asked_for_or_have_changed_are_missing() -> None:
    source = cluster()
    cache = MetadataCache()

    at_first = cache.missing(source, source.topics.values(), 12, operations=NOT_ASKED)
    kept(cache, source, 12)
    then = cache.missing(source, source.topics.values(), 12, operations=NOT_ASKED)
    moved = changed(source, topic("payments", partitions=9))
    later = cache.missing(moved, moved.topics.values(), 12, operations=NOT_ASKED)

    assert [each.name for each in at_first] == list(NAMES)
    assert then == []
    assert [each.name for each in later] == ["payments"]


def test_all_topics_are_told_at_once_only_if_few_must_be_encoded() -> None:
    source = cluster()
    cache = MetadataCache()

    cold = cache.all_topics(source, 12, operations=NOT_ASKED, at_most=8)
    told = cache.all_topics(source, 12, operations=NOT_ASKED, at_most=9)
    again = cache.all_topics(source, 12, operations=NOT_ASKED, at_most=0)

    assert cold is None
    assert told == kept(cache, source, 12)
    assert again is told


def test_a_topic_made_anew_under_its_old_name_is_encoded_anew() -> None:
    source = cluster()
    cache = MetadataCache()
    kept(cache, source, 12)
    anew = replace(topic("orders"), id=b"n" * 16)

    answer = decoded([cache.topic(changed(source, anew), anew, 12, operations=NOT_ASKED)], 12)

    assert answer.topics[0].topic_id == b"n" * 16


def test_what_was_deleted_is_forgotten() -> None:
    source = image([topic(f"t{number}") for number in range(50)])
    cache = MetadataCache()
    kept(cache, source, 12)

    kept(cache, image([topic("t1")]), 12)

    assert len(cache) == 1


def test_a_broker_that_goes_takes_its_leadership_with_it() -> None:
    source = image([topic("orders", replicas=(2,))], brokers=[broker(1), broker(2)])
    fenced = replace(source, brokers=MappingProxyType({1: broker(1), 2: broker(2, is_fenced=True)}))
    cache = MetadataCache()

    before = decoded(kept(cache, source, 12), 12).topics[0].partitions[0]
    after = decoded(kept(cache, fenced, 12), 12).topics[0].partitions[0]

    assert (before.error_code, before.leader_id, before.offline_replicas) == (0, 2, [])
    assert after.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (after.leader_id, after.replica_nodes, after.offline_replicas) == (-1, [2], [2])


def test_the_oldest_version_leaves_out_replicas_that_are_away() -> None:
    source = image(
        [topic("orders", replicas=(1, 2))], brokers=[broker(1), broker(2, is_fenced=True)]
    )

    partition = decoded(kept(MetadataCache(), source, 0), 0).topics[0].partitions[0]

    assert partition.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])


def test_no_more_layouts_are_kept_than_the_limit() -> None:
    source = cluster()
    cache = MetadataCache()

    for version in VERSIONS:
        kept(cache, source, version)

    assert len(cache) == MAX_LAYOUTS * len(NAMES)
    assert cache.missing(source, source.topics.values(), 13, operations=NOT_ASKED) == [], (
        "the one used last stays"
    )


def test_operations_are_told_to_those_who_ask_only() -> None:
    source = cluster()
    cache = MetadataCache()

    told = decoded(kept(cache, source, 12, ALL_TOPIC_OPERATIONS), 12)
    untold = decoded(kept(cache, source, 12), 12)

    assert {each.topic_authorized_operations for each in told.topics} == {3576}
    assert {each.topic_authorized_operations for each in untold.topics} == {-(2**31)}


def test_internal_topics_are_marked() -> None:
    answer = decoded(kept(MetadataCache(), cluster(), 12), 12)

    assert {each.name: each.is_internal for each in answer.topics} == {
        "orders": False,
        "payments": False,
        "__consumer_offsets": True,
    }


def test_every_layout_begins_where_a_field_does() -> None:
    assert LAYOUTS == (0, 1, 5, 7, 8, 9, 10)
