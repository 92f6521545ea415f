"""Kafka's own Java admin client as a door of the admin table."""

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.interop.clients.admin import Described, Refused
from tests.oracles.java import gateway, java_class

ADMIN = "org.apache.kafka.clients.admin"
COMMON = "org.apache.kafka.common"


class JavaDoor:
    def __init__(self, bootstrap: str) -> None:
        self._admin = java_class(f"{ADMIN}.Admin").create({"bootstrap.servers": bootstrap})

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
        wanted = java_class(f"{ADMIN}.NewTopic")(topic, partitions, replicas)
        wanted = wanted.configs(dict(configs))
        options = java_class(f"{ADMIN}.CreateTopicsOptions")().validateOnly(validate_only)
        got(self._admin.createTopics([wanted], options).all())

    def delete_topic(self, topic: str) -> None:
        got(self._admin.deleteTopics([topic]).all())

    def has_topic(self, topic: str) -> bool:
        return topic in got(self._admin.listTopics().names())

    def describe_topic(self, topic: str) -> Described:
        found = got(self._admin.describeTopics([topic]).allTopicNames())[topic]
        return [
            (each.partition(), each.leader().id(), _ids(each.replicas()), _ids(each.isr()))
            for each in found.partitions()
        ]

    def create_partitions(self, topic: str, total: int) -> None:
        wanted = java_class(f"{ADMIN}.NewPartitions").increaseTo(total)
        got(self._admin.createPartitions({topic: wanted}).all())

    def topic_configs(self, topic: str) -> dict[str, str]:
        return self._configs("TOPIC", topic)

    def broker_config(self, key: str) -> str:
        nodes = _ids(got(self._admin.describeCluster().nodes()))
        return self._configs("BROKER", str(min(nodes)))[key]

    def _configs(self, kind: str, name: str) -> dict[str, str]:
        asked = _resource(kind, name)
        found = got(self._admin.describeConfigs([asked]).all())[asked]
        return {entry.name(): entry.value() for entry in listed(found.entries())}

    def set_config(self, topic: str, key: str, value: str) -> None:
        self._alter(topic, "SET", key, value)

    def append_config(self, topic: str, key: str, value: str) -> None:
        self._alter(topic, "APPEND", key, value)

    def delete_config(self, topic: str, key: str) -> None:
        self._alter(topic, "DELETE", key, None)

    def _alter(self, topic: str, how: str, key: str, value: str | None) -> None:
        operations = java_class(f"{ADMIN}.AlterConfigOp").OpType
        entry = java_class(f"{ADMIN}.ConfigEntry")(key, value)
        change = java_class(f"{ADMIN}.AlterConfigOp")(entry, getattr(operations, how))
        asked = {_resource("TOPIC", topic): [change]}
        got(self._admin.incrementalAlterConfigs(asked).all())

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = place_of(topic, partition)
        told = self._admin.deleteRecords({place: _records_before(before)}).lowWatermarks()
        return int(got(told[place]).lowWatermark())

    def cluster(self) -> tuple[int, bool, bool]:
        found = self._admin.describeCluster()
        ids = _ids(got(found.nodes()))
        return len(ids), got(found.controller()).id() in ids, bool(got(found.clusterId()))

    def log_dir_partitions(self, topic: str) -> list[tuple[int, bool]]:
        nodes = _ids(got(self._admin.describeCluster().nodes()))
        told = got(self._admin.describeLogDirs(nodes).allDescriptions())
        return sorted(
            (place.partition(), replica.size() > 0)
            for folders in listed(told.values())
            for folder in listed(folders.values())
            for place, replica in folder.replicaInfos().items()
            if place.topic() == topic
        )

    def list_offset(self, topic: str, partition: int, spec: int) -> int:
        specs = java_class(f"{ADMIN}.OffsetSpec")
        named = {-1: specs.latest, -2: specs.earliest, -3: specs.maxTimestamp}
        asked = named[spec]() if spec in named else specs.forTimestamp(spec)
        place = place_of(topic, partition)
        return int(got(self._admin.listOffsets({place: asked}).all())[place].offset())

    def producers(self, topic: str, partition: int) -> list[int]:
        place = place_of(topic, partition)
        found = got(self._admin.describeProducers([place]).all())[place]
        return [each.lastSequence() for each in found.activeProducers()]

    def acls(self) -> int:
        anything = java_class(f"{COMMON}.acl.AclBindingFilter").ANY
        return len(listed(got(self._admin.describeAcls(anything).values())))

    def create_acl(self, topic: str) -> None:
        got(self._admin.createAcls([_rule(topic)]).all())

    def delete_acls(self, topic: str) -> None:
        got(self._admin.deleteAcls([_rule(topic).toFilter()]).all())

    def scram_users(self) -> list[str]:
        return sorted(listed(got(self._admin.describeUserScramCredentials().users())))

    def scram_user(self, name: str) -> None:
        got(self._admin.describeUserScramCredentials([name]).description(name))

    def quotas(self) -> int:
        everything = java_class(f"{COMMON}.quota.ClientQuotaFilter").all()
        return len(got(self._admin.describeClientQuotas(everything).entities()))

    def reassignments(self) -> list[str]:
        found = got(self._admin.listPartitionReassignments().reassignments())
        return sorted(place.topic() for place in listed(found.keySet()))

    def elect(self, topic: str, partition: int) -> None:
        kind = java_class(f"{COMMON}.ElectionType").PREFERRED
        places = java_class("java.util.HashSet")([place_of(topic, partition)])
        told = got(self._admin.electLeaders(kind, places).partitions())
        (error,) = listed(told.values())
        if error.isPresent():
            raise refused(error.get())


def got(future: Any) -> Any:
    try:
        return future.get()
    except Py4JJavaError as error:
        raise error_of(error) from error


def error_of(error: Py4JJavaError) -> Refused:
    """Return what the broker said, of what a future of the client has thrown."""
    return refused(error.java_exception.getCause())


def refused(cause: Any) -> Refused:
    code = java_class(f"{COMMON}.protocol.Errors").forException(cause).code()
    return Refused(code, str(cause))


def _rule(topic: str) -> Any:
    """Any user may read the topic."""
    acl = f"{COMMON}.acl"
    kind = java_class(f"{COMMON}.resource.ResourceType").TOPIC
    pattern = java_class(f"{COMMON}.resource.PatternType").LITERAL
    read = java_class(f"{acl}.AclOperation").READ
    allow = java_class(f"{acl}.AclPermissionType").ALLOW
    entry = java_class(f"{acl}.AccessControlEntry")("User:*", "*", read, allow)
    resource = java_class(f"{COMMON}.resource.ResourcePattern")(kind, topic, pattern)
    return java_class(f"{acl}.AclBinding")(resource, entry)


def _records_before(offset: int) -> Any:
    """Call RecordsToDelete.beforeOffset, which py4j cannot find behind a field of that name."""
    java_lang = gateway().jvm.java.lang
    kinds = gateway().new_array(java_lang.Class, 1)
    values = gateway().new_array(java_lang.Object, 1)
    kinds[0], values[0] = java_lang.Long.TYPE, offset
    found = java_lang.Class.forName(f"{ADMIN}.RecordsToDelete")
    return found.getMethod("beforeOffset", kinds).invoke(None, values)


def _resource(kind: str, name: str) -> Any:
    resource = java_class(f"{COMMON}.config.ConfigResource")
    return resource(getattr(resource.Type, kind), name)


def place_of(topic: str, partition: int) -> Any:
    return java_class(f"{COMMON}.TopicPartition")(topic, partition)


def _ids(nodes: Any) -> list[int]:
    return [node.id() for node in listed(nodes)]


def listed(found: Any) -> Any:
    """Make a list of a collection that is not one, because py4j goes over lists only."""
    return java_class("java.util.ArrayList")(found)
