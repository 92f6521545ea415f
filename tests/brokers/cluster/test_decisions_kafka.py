"""The same refusals from Apache Kafka itself, with the same codes.

The broker comes by Maven, so this file is an extra. It is one node, which changes no code of the
table: an assignment to broker 2 or 3 is one to a broker that is not registered.
"""

import socket
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import TypeVar

import pytest

from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages import create_partitions, create_topics, delete_topics
from brokers.protocol.messages import incremental_alter_configs as alter_configs
from brokers.protocol.schema import Message
from tests.brokers.cluster.refusals import OURS, REFUSED
from tests.extras import requires
from tests.oracles.kafka_broker import KafkaBroker

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    # One worker for all of the file, so that its broker runs once.
    pytest.mark.xdist_group("maven-decisions"),
    requires("java", "maven-kafka"),
]

M = TypeVar("M", bound=Message)

SIZE = Struct(">i")
# Key, version, correlation id, client id, no tagged fields.
REQUEST_HEAD = Struct(">hhihb")
# Size, correlation id, no tagged fields.
ANSWER_HEAD = Struct(">iib")
TIMEOUT_MS = 10_000
COMPARED = [(action, code) for action, code, _ in REFUSED if action not in OURS]


class Kafka:
    """One node, asked over the wire."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.partition(":")
        self._address = (host, int(port))

    def code(self, action: Action) -> int:
        match action:
            case CreateTopic():
                return self._create(action)
            case DeleteTopic():
                return self._delete(action)
            case CreatePartitions():
                return self._grow(action)
            case AlterConfigs():
                return self._alter(action)
            case _:
                raise AssertionError(action)

    def ask(self, key: int, version: int, request: Message, answer: type[M]) -> M:
        parts = codec(type(request), version).encode(request)
        frame = REQUEST_HEAD.pack(key, version, 1, -1, 0) + b"".join(map(bytes, parts))
        with socket.create_connection(self._address, timeout=TIMEOUT_MS / 1000) as opened:
            opened.sendall(SIZE.pack(len(frame)) + frame)
            stream = opened.makefile("rb")
            (size,) = SIZE.unpack(stream.read(SIZE.size))
            body = stream.read(size)
        return codec(answer, version).decode(body[ANSWER_HEAD.size - SIZE.size :])

    def _create(self, action: CreateTopic) -> int:
        topic = create_topics.CreatableTopic(
            name=action.name,
            num_partitions=action.partitions,
            replication_factor=action.replication_factor,
            assignments=[
                create_topics.CreatableReplicaAssignment(
                    partition_index=index, broker_ids=list(replicas)
                )
                for index, replicas in enumerate(action.assignments or ())
            ],
            configs=[
                create_topics.CreatableTopicConfig(name=key, value=value)
                for key, value in action.configs
            ],
        )
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        return self.ask(19, 7, request, create_topics.CreateTopicsResponse).topics[0].error_code

    def _delete(self, action: DeleteTopic) -> int:
        topic = delete_topics.DeleteTopicState(
            name=action.name, topic_id=action.topic_id or bytes(16)
        )
        request = delete_topics.DeleteTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        return self.ask(20, 6, request, delete_topics.DeleteTopicsResponse).responses[0].error_code

    def _grow(self, action: CreatePartitions) -> int:
        assignments = action.assignments and [
            create_partitions.CreatePartitionsAssignment(broker_ids=list(replicas))
            for replicas in action.assignments
        ]
        topic = create_partitions.CreatePartitionsTopic(
            name=action.name, count=action.count, assignments=assignments or None
        )
        request = create_partitions.CreatePartitionsRequest(
            topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=False
        )
        answer = self.ask(37, 3, request, create_partitions.CreatePartitionsResponse)
        return answer.results[0].error_code

    def _alter(self, action: AlterConfigs) -> int:
        resource = alter_configs.AlterConfigsResource(
            resource_type=action.resource_type,
            resource_name=action.name,
            configs=[
                alter_configs.AlterableConfig(
                    name=edit.key, config_operation=edit.operation, value=edit.value
                )
                for edit in action.edits
            ],
        )
        request = alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=False
        )
        answer = self.ask(44, 1, request, alter_configs.IncrementalAlterConfigsResponse)
        return answer.responses[0].error_code


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    broker = KafkaBroker(Path(tmp_path_factory.mktemp("kafka")))
    with broker.running():
        made = Kafka(broker.bootstrap)
        for topic in (
            CreateTopic(name="orders", partitions=3),
            CreateTopic(name="a.b"),
            CreateTopic(name="set", configs=(("cleanup.policy", "compact"),)),
        ):
            assert made.code(topic) == ErrorCode.NONE
        yield made


@pytest.mark.parametrize(("action", "code"), COMPARED)
def test_kafka_refuses_the_same_with_the_same_code(
    kafka: Kafka, action: Action, code: ErrorCode
) -> None:
    assert kafka.code(action) == code


def test_every_difference_is_in_the_table() -> None:
    assert set(OURS) <= {action for action, _, _ in REFUSED}
