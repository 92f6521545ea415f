"""confluent-kafka's admin client as a door of the admin table."""

import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ElectionType, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.interop.clients.admin import SECONDS, Described, Refused

SPECS = {-1: OffsetSpec.latest, -2: OffsetSpec.earliest, -3: OffsetSpec.max_timestamp}


class ConfluentDoor:
    def __init__(self, bootstrap: str) -> None:
        # Any, since its stubs know one of the two answers of describe_user_scram_credentials only.
        self._admin: Any = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})

    def close(self) -> None:
        """Nothing to do: the client ends with its last reference."""

    def create_topic(
        self,
        topic: str,
        partitions: int = 2,
        replicas: int = 1,
        configs: Mapping[str, str] = {},
        validate_only: bool = False,
    ) -> None:
        wanted = NewTopic(topic, partitions, replicas, config=dict(configs))
        _only(self._admin.create_topics([wanted], validate_only=validate_only))

    def delete_topic(self, topic: str) -> None:
        _only(self._admin.delete_topics([topic]))

    def has_topic(self, topic: str) -> bool:
        return topic in self._admin.list_topics(timeout=SECONDS).topics

    def describe_topic(self, topic: str) -> Described:
        found = _only(self._admin.describe_topics(TopicCollection([topic])))
        return [
            (each.id, each.leader.id, _ids(each.replicas), _ids(each.isr))
            for each in found.partitions
        ]

    def create_partitions(self, topic: str, total: int) -> None:
        _only(self._admin.create_partitions([NewPartitions(topic, total)]))

    def topic_configs(self, topic: str) -> dict[str, str]:
        return self._configs(ConfigResource(ResourceType.TOPIC, topic))

    def broker_config(self, key: str) -> str:
        nodes = self._admin.list_topics(timeout=SECONDS).brokers
        return self._configs(ConfigResource(ResourceType.BROKER, str(min(nodes))))[key]

    def _configs(self, resource: ConfigResource) -> dict[str, str]:
        found = _only(self._admin.describe_configs([resource]))
        return {name: entry.value for name, entry in found.items()}

    def set_config(self, topic: str, key: str, value: str) -> None:
        self._alter(topic, AlterConfigOpType.SET, key, value)

    def append_config(self, topic: str, key: str, value: str) -> None:
        self._alter(topic, AlterConfigOpType.APPEND, key, value)

    def delete_config(self, topic: str, key: str) -> None:
        self._alter(topic, AlterConfigOpType.DELETE, key, None)

    def _alter(self, topic: str, how: AlterConfigOpType, key: str, value: str | None) -> None:
        source = ConfigSource.DYNAMIC_TOPIC_CONFIG
        entry = ConfigEntry(key, value, source, incremental_operation=how)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        _only(self._admin.incremental_alter_configs([resource]))

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config=dict(configs))
        # It would have its users call the newer one.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            _only(self._admin.alter_configs([resource]))

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        asked = TopicPartition(topic, partition, before)
        return int(_only(self._admin.delete_records([asked])).low_watermark)

    def cluster(self) -> tuple[int, bool, bool]:
        found = self._admin.describe_cluster().result(SECONDS)
        ids = _ids(found.nodes)
        return len(ids), found.controller.id in ids, bool(found.cluster_id)

    def list_offset(self, topic: str, partition: int, spec: int) -> int:
        asked = SPECS[spec]() if spec in SPECS else OffsetSpec.for_timestamp(spec)
        place = TopicPartition(topic, partition)
        return int(_only(self._admin.list_offsets({place: asked})).offset)

    def create_acl(self, topic: str) -> None:
        # Any user may read the topic.
        rule = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            "User:*",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        _only(self._admin.create_acls([rule]))

    def delete_acls(self, topic: str) -> None:
        anybody: Any = None
        found = AclBindingFilter(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            anybody,
            anybody,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        _only(self._admin.delete_acls([found]))

    def scram_users(self) -> list[str]:
        return sorted(self._admin.describe_user_scram_credentials().result(SECONDS))

    def scram_user(self, name: str) -> None:
        _only(self._admin.describe_user_scram_credentials([name]))

    def elect(self, topic: str, partition: int) -> None:
        places = [TopicPartition(topic, partition)]
        told = self._admin.elect_leaders(ElectionType.PREFERRED, places).result(SECONDS)
        (error,) = told.values()
        if error is not None:
            raise Refused(error.code(), error.str())


def _only(futures: Mapping[Any, "Future[Any]"]) -> Any:
    (future,) = futures.values()
    try:
        return future.result(SECONDS)
    except KafkaException as error:
        raise Refused(error.args[0].code(), error.args[0].str()) from error


def _ids(nodes: Any) -> list[int]:
    return [node.id for node in nodes]
