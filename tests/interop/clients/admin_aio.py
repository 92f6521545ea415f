"""aiokafka's admin client as a door of the admin table."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError

from tests.interop.clients.admin import SECONDS, Described, Refused

T = TypeVar("T")


class AioDoor:
    def __init__(self, bootstrap: str) -> None:
        self._runner = asyncio.Runner()
        self._admin = self._run(_opened(bootstrap))

    def close(self) -> None:
        self._run(self._admin.close())
        self._runner.close()

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            return self._runner.run(asyncio.wait_for(call, SECONDS))
        except BrokerResponseError as error:
            raise Refused(error.errno, str(error)) from error

    def create_topic(
        self,
        topic: str,
        partitions: int = 2,
        replicas: int = 1,
        configs: Mapping[str, str] = {},
        validate_only: bool = False,
    ) -> None:
        wanted = NewTopic(topic, partitions, replicas, topic_configs=dict(configs))
        told = self._run(self._admin.create_topics([wanted], validate_only=validate_only))
        _check(*told.topic_errors[0][1:3])

    def delete_topic(self, topic: str) -> None:
        _check(self._run(self._admin.delete_topics([topic])).topic_error_codes[0][1])

    def has_topic(self, topic: str) -> bool:
        return topic in self._run(self._admin.list_topics())

    def describe_topic(self, topic: str) -> Described:
        (found,) = self._run(self._admin.describe_topics([topic]))
        _check(found["error_code"])
        return sorted(
            (each["partition"], each["leader"], list(each["replicas"]), list(each["isr"]))
            for each in found["partitions"]
        )

    def create_partitions(self, topic: str, total: int) -> None:
        self._run(self._admin.create_partitions({topic: NewPartitions(total)}))

    def topic_configs(self, topic: str) -> dict[str, str]:
        return self._configs(ConfigResourceType.TOPIC, topic)

    def broker_config(self, key: str) -> str:
        nodes = self._run(self._admin.describe_cluster())["brokers"]
        name = str(min(each["node_id"] for each in nodes))
        return self._configs(ConfigResourceType.BROKER, name)[key]

    def _configs(self, kind: ConfigResourceType, name: str) -> dict[str, str]:
        told = self._run(self._admin.describe_configs([ConfigResource(kind, name)]))
        (result,) = [each for response in told for each in response.resources]
        _check(*result[:2])
        return {entry[0]: entry[1] for entry in result[4]}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        told = self._run(self._admin.alter_configs([resource]))
        _check(*told[0].resources[0][:2])

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = TopicPartition(topic, partition)
        asked = {place: RecordsToDelete(before)}
        return int(self._run(self._admin.delete_records(asked))[place])

    def cluster(self) -> tuple[int, bool, bool]:
        found = self._run(self._admin.describe_cluster())
        ids = [each["node_id"] for each in found["brokers"]]
        return len(ids), found["controller_id"] in ids, bool(found["cluster_id"])


async def _opened(bootstrap: str) -> AIOKafkaAdminClient:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    return admin


def _check(code: int, message: str | None = None) -> None:
    if code:
        raise Refused(code, message or "")
