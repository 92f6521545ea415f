"""kafka-python's admin client as a door of the admin table."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import BrokerResponseError

from tests.interop.clients.admin import Described, Refused

ERROR = re.compile(r"\[Error (\d+)\]")


class KafkaPythonDoor:
    def __init__(self, bootstrap: str) -> None:
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def close(self) -> None:
        self._admin.close()

    def create_topic(
        self,
        topic: str,
        partitions: int = 2,
        replicas: int = 1,
        configs: Mapping[str, str] = {},
        validate_only: bool = False,
    ) -> None:
        wanted = {"num_partitions": partitions, "replication_factor": replicas}
        with refusals():
            self._admin.create_topics(
                {topic: {**wanted, "configs": dict(configs)}}, validate_only=validate_only
            )

    def delete_topic(self, topic: str) -> None:
        with refusals():
            self._admin.delete_topics([topic])

    def has_topic(self, topic: str) -> bool:
        return topic in self._admin.list_topics()

    def describe_topic(self, topic: str) -> Described:
        (found,) = self._admin.describe_topics([topic])
        if found["error_code"]:
            raise Refused(found["error_code"])
        parts = sorted(found["partitions"], key=lambda each: each["partition_index"])
        return [
            (
                each["partition_index"],
                each["leader_id"],
                list(each["replica_nodes"]),
                list(each["isr_nodes"]),
            )
            for each in parts
        ]

    def create_partitions(self, topic: str, total: int) -> None:
        with refusals():
            self._admin.create_partitions({topic: total})

    def topic_configs(self, topic: str) -> dict[str, str]:
        return self._configs(ConfigResourceType.TOPIC, topic)

    def broker_config(self, key: str) -> str:
        nodes = [each["broker_id"] for each in self._admin.describe_cluster()["brokers"]]
        return self._configs(ConfigResourceType.BROKER, str(min(nodes)))[key]

    def _configs(self, kind: ConfigResourceType, name: str) -> dict[str, str]:
        found = self._admin.describe_configs([ConfigResource(kind, name)], config_filter="all")
        entries = found[kind.name.lower()][name]
        return {key: entry["value"] for key, entry in entries.items()}

    def set_config(self, topic: str, key: str, value: str) -> None:
        self._alter(topic, {key: ("SET", value)}, incremental=True)

    def append_config(self, topic: str, key: str, value: str) -> None:
        self._alter(topic, {key: ("APPEND", value)}, incremental=True)

    def delete_config(self, topic: str, key: str) -> None:
        self._alter(topic, {key: ("DELETE", None)}, incremental=True)

    def _alter(self, topic: str, configs: Mapping[str, Any], *, incremental: bool) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)
        with refusals():
            told = self._admin.alter_configs(
                [resource], raise_on_unknown=False, incremental=incremental
            )
        # It hands a refusal back in words.
        if found := ERROR.match(told["topic"][topic]):
            raise Refused(int(found[1]), found.string)

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = TopicPartition(topic, partition)
        with refusals():
            return int(self._admin.delete_records({place: before})[place]["low_watermark"])

    def cluster(self) -> tuple[int, bool, bool]:
        found = self._admin.describe_cluster()
        ids = [each["broker_id"] for each in found["brokers"]]
        return len(ids), found["controller_id"] in ids, bool(found["cluster_id"])

    def log_dir_partitions(self, topic: str) -> list[tuple[int, bool]]:
        return sorted(
            (part["partition_index"], part["partition_size"] > 0)
            for broker in self._admin.describe_log_dirs([topic])
            for folder in broker["log_dirs"]
            for each in folder["topics"]
            for part in each["partitions"]
        )

    def list_offset(self, topic: str, partition: int, spec: int) -> int:
        place = TopicPartition(topic, partition)
        with refusals():
            return int(self._admin.list_partition_offsets({place: spec})[place].offset)

    def producers(self, topic: str, partition: int) -> list[int]:
        place = TopicPartition(topic, partition)
        with refusals():
            found = self._admin.describe_producers([place])[place]
        return [each.last_sequence for each in found.active_producers]

    def acls(self) -> int:
        with refusals():
            found, _error = self._admin.describe_acls(_rules(None))
        return len(found)

    def create_acl(self, topic: str) -> None:
        # Any user may read the topic.
        pattern = ResourcePattern(ResourceType.TOPIC, topic)
        rule = ACL("User:*", "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
        for error in self._admin.create_acls([rule])["failed"]:
            raise Refused(error.errno)

    def delete_acls(self, topic: str) -> None:
        for _asked, _found, error in self._admin.delete_acls([_rules(topic)]):
            if error.errno:
                raise Refused(error.errno)

    def scram_users(self) -> list[str]:
        return sorted(self._admin.describe_user_scram_credentials())

    def elect(self, topic: str, partition: int) -> None:
        told = self._admin.elect_leaders(0, {topic: [partition]}, raise_errors=False)
        ((result,),) = (each.partition_result for each in told.replica_election_results)
        if result.error_code:
            raise Refused(result.error_code, result.error_message)

    def reassignments(self) -> list[str]:
        return sorted(place.topic for place in self._admin.list_partition_reassignments())


def _rules(topic: str | None) -> ACLFilter:
    kind = ResourceType.ANY if topic is None else ResourceType.TOPIC
    pattern = ResourcePatternFilter(kind, topic, ACLResourcePatternType.ANY)
    return ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error
