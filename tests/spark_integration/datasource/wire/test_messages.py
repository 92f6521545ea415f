"""Our few messages against the house's codec, which knows all fields of all versions."""

from typing import Any

import pytest

from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from brokers.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from brokers.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from brokers.protocol.messages.init_producer_id import InitProducerIdResponse
from brokers.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from brokers.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from brokers.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from brokers.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from brokers.protocol.messages.sasl_handshake import SaslHandshakeResponse
from brokers.protocol.schema import Message
from spark_integration.datasource.wire import messages
from spark_integration.datasource.wire.errors import BrokerError, WireCorrupt
from spark_integration.datasource.wire.messages import Api, TopicPartition
from spark_integration.datasource.wire.primitives import Reader

TOPIC_ID = bytes(range(16))


def understood(api: Api, body: bytes) -> Any:
    """What a broker of ours takes a request for."""
    return codec(APIS[api.key].request, api.version).decode(body)


def answered(api: Api, message: Message) -> Reader:
    return Reader(b"".join(codec(APIS[api.key].response, api.version).encode(message)))


def test_metadata_is_asked_of_some_topics_or_of_all() -> None:
    some = understood(messages.METADATA, messages.metadata_request(["a", "bé"]))
    every = understood(messages.METADATA, messages.metadata_request(None))

    assert [topic.name for topic in some.topics] == ["a", "bé"]
    assert not some.allow_auto_topic_creation
    assert every.topics is None


def test_metadata_has_brokers_topics_and_leaders() -> None:
    row = MetadataResponsePartition(
        error_code=0,
        partition_index=2,
        leader_id=7,
        leader_epoch=3,
        replica_nodes=[7, 8],
        isr_nodes=[7],
        offline_replicas=[8],
    )
    topic = MetadataResponseTopic(
        error_code=0, name="a", topic_id=TOPIC_ID, is_internal=True, partitions=[row]
    )
    answer = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=7, host="h", port=9092, rack="r")], topics=[topic]
    )

    told = messages.read_metadata(answered(messages.METADATA, answer))

    assert told.brokers == {7: ("h", 9092)}
    assert told.topics["a"].leaders == {2: 7}
    assert told.topics["a"].topic_id == TOPIC_ID
    assert told.topics["a"].is_internal


def test_offsets_are_requested_by_time_and_returned_by_partition() -> None:
    wanted = {TopicPartition("a", 0): 5, TopicPartition("a", 3): -1, TopicPartition("b", 1): -2}

    asked = understood(messages.LIST_OFFSETS, messages.list_offsets_request(wanted, isolation=1))
    answer = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="a",
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=3, error_code=6, offset=-1),
                    ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=2**40),
                ],
            )
        ]
    )
    found = messages.read_list_offsets(answered(messages.LIST_OFFSETS, answer))

    assert asked.isolation_level == 1
    assert {
        TopicPartition(topic.name, row.partition_index): row.timestamp
        for topic in asked.topics
        for row in topic.partitions
    } == wanted
    assert found == {TopicPartition("a", 3): (6, -1), TopicPartition("a", 0): (0, 2**40)}


def test_a_fetch_names_a_topic_by_its_id_and_brings_its_batches() -> None:
    body = messages.fetch_request(TOPIC_ID, 4, 2**40, max_bytes=1000, max_wait_ms=250, isolation=1)
    asked = understood(messages.FETCH, body)
    partition = PartitionData(
        partition_index=4,
        error_code=0,
        high_watermark=9,
        last_stable_offset=8,
        log_start_offset=1,
        aborted_transactions=[AbortedTransaction(producer_id=5, first_offset=6)],
        records=memoryview(b"batches"),
    )
    answer = FetchResponse(
        throttle_time_ms=30,
        responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])],
    )
    fetched = messages.read_fetch(answered(messages.FETCH, answer))

    (row,) = asked.topics[0].partitions
    assert (asked.topics[0].topic_id, row.partition, row.fetch_offset) == (TOPIC_ID, 4, 2**40)
    assert (asked.max_wait_ms, asked.min_bytes, asked.isolation_level) == (250, 1, 1)
    assert (row.partition_max_bytes, asked.max_bytes, asked.session_epoch) == (1000, 1000, -1)
    assert (fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset) == (
        9,
        8,
        1,
    )
    assert fetched.aborted == [(5, 6)]
    assert fetched.throttle_ms == 30
    assert bytes(fetched.records) == b"batches"


def test_a_fetch_answered_for_nothing_is_corrupt() -> None:
    with pytest.raises(WireCorrupt, match="one partition returned 0"):
        messages.read_fetch(answered(messages.FETCH, FetchResponse(responses=[])))


def test_batches_are_produced_by_partition() -> None:
    batches = {TopicPartition("a", 0): b"one", TopicPartition("a", 1): b"two"}

    asked = understood(messages.PRODUCE, messages.produce_request(batches, timeout_ms=9))
    answer = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="a",
                partition_responses=[
                    PartitionProduceResponse(index=1, error_code=0, base_offset=12),
                    PartitionProduceResponse(
                        index=0, error_code=87, base_offset=-1, error_message="no key"
                    ),
                ],
            )
        ]
    )
    produced = messages.read_produce(answered(messages.PRODUCE, answer))

    rows = asked.topic_data[0].partition_data
    assert [(row.index, bytes(row.records)) for row in rows] == [(0, b"one"), (1, b"two")]
    assert (asked.acks, asked.timeout_ms, asked.transactional_id) == (-1, 9, None)
    assert produced[TopicPartition("a", 1)] == (0, 12, None)
    assert produced[TopicPartition("a", 0)] == (87, -1, "no key")


def test_a_producer_gets_an_identity() -> None:
    asked = understood(messages.INIT_PRODUCER_ID, messages.init_producer_id_request())
    answer = InitProducerIdResponse(error_code=0, producer_id=4000, producer_epoch=2)

    assert asked.transactional_id is None
    assert messages.read_init_producer_id(answered(messages.INIT_PRODUCER_ID, answer)) == (4000, 2)


def test_a_topic_is_created_with_its_configs() -> None:
    body = messages.create_topic_request(
        "t", partitions=3, configs={"cleanup.policy": "compact"}, timeout_ms=5
    )
    asked = understood(messages.CREATE_TOPICS, body)
    answer = CreateTopicsResponse(
        topics=[CreatableTopicResult(name="t", error_code=36, error_message="there")]
    )

    (topic,) = asked.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("t", 3, -1)
    assert [(row.name, row.value) for row in topic.configs] == [("cleanup.policy", "compact")]
    assert messages.read_create_topics(answered(messages.CREATE_TOPICS, answer)) == [
        ("t", 36, "there")
    ]


def test_versions_are_listed_by_api() -> None:
    answer = ApiVersionsResponse(
        error_code=0, api_keys=[ApiVersion(api_key=1, min_version=4, max_version=18)]
    )

    assert messages.read_api_versions(answered(messages.API_VERSIONS, answer)) == {1: (4, 18)}


def test_a_login_goes_in_two_kinds_of_requests() -> None:
    hand = understood(messages.SASL_HANDSHAKE, messages.sasl_handshake_request("PLAIN"))
    step = understood(messages.SASL_AUTHENTICATE, messages.sasl_authenticate_request(b"token"))
    offered = SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN"])
    said = SaslAuthenticateResponse(error_code=58, error_message="no", auth_bytes=b"x")

    assert (hand.mechanism, bytes(step.auth_bytes)) == ("PLAIN", b"token")
    assert messages.read_sasl_handshake(answered(messages.SASL_HANDSHAKE, offered)) == (
        33,
        ["PLAIN"],
    )
    assert messages.read_sasl_authenticate(answered(messages.SASL_AUTHENTICATE, said)) == (
        58,
        "no",
        b"x",
    )


def test_an_error_of_a_whole_answer_names_the_api_and_the_code() -> None:
    answer = InitProducerIdResponse(error_code=31, producer_id=-1, producer_epoch=-1)

    with pytest.raises(BrokerError, match="InitProducerId: CLUSTER_AUTHORIZATION_FAILED"):
        messages.read_init_producer_id(answered(messages.INIT_PRODUCER_ID, answer))
