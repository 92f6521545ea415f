"""Builds bodies of version 3 from the cluster's answers. Pure.

`related` links have the scheme, host and prefix of the request, so that a client can follow them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from gateway.kafka.acls import AclRule
from gateway.kafka.values import Broker, Cluster, Config, Group, Member, Partition, Place, Topic
from gateway.rest.v3.words import CONFIG_SOURCES

Body = dict[str, Any]
Name = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class LagRow:
    """The lag of a group in one partition, and the member that reads it."""

    place: Place
    committed: int
    end: int
    member: Member | None

    @property
    def lag(self) -> int:
        # A commit beyond the end is of a truncated log, without lag.
        return max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bodies:
    """Builds bodies; `base` is the URL of the interface, `https://host:port/v3`."""

    base: str
    cluster: str

    def url(self, *segments: Name) -> str:
        return "/".join(
            [self.base, "clusters", *(quoted(one) for one in (self.cluster, *segments))]
        )

    def link(self, *segments: Name) -> Body:
        return {"related": self.url(*segments)}

    def listed(self, kind: str, items: Iterable[Body], *segments: Name) -> Body:
        """Return a list whose URL has these segments."""
        return self._listed(kind, items, self.url(*segments))

    def clusters(self, found: Iterable[Cluster]) -> Body:
        items = [self.of_cluster(one) for one in found]
        return self._listed("KafkaCluster", items, f"{self.base}/clusters")

    def of_cluster(self, found: Cluster) -> Body:
        controller = found.controller
        return self._item("KafkaCluster", (), ()) | {
            **({} if controller is None else {"controller": self.link("brokers", controller)}),
            "acls": self.link("acls"),
            "brokers": self.link("brokers"),
            "broker_configs": self.link("broker-configs"),
            "consumer_groups": self.link("consumer-groups"),
            "topics": self.link("topics"),
            "partition_reassignments": self.link("topics", "-", "partitions", "-", "reassignment"),
        }

    def of_broker(self, found: Broker) -> Body:
        at = ("brokers", found.id)
        return self._item("KafkaBroker", at, ("broker", found.id)) | {
            "broker_id": found.id,
            "host": found.host,
            "port": found.port,
            "rack": found.rack,
            "configs": self.link(*at, "configs"),
            "partition_replicas": self.link(*at, "partition-replicas"),
        }

    def of_topic(self, found: Topic) -> Body:
        body = self.topic(
            found.name,
            is_internal=found.is_internal,
            partitions=len(found.partitions),
            replication_factor=found.replication_factor,
        )
        if found.operations is not None:
            body["authorized_operations"] = list(found.operations)
        return body

    def topic(
        self, name: str, *, is_internal: bool, partitions: int, replication_factor: int
    ) -> Body:
        at = ("topics", name)
        return self._item("KafkaTopic", at, ("topic", name)) | {
            "topic_name": name,
            "is_internal": is_internal,
            "replication_factor": replication_factor,
            "partitions_count": partitions,
            "partitions": self.link(*at, "partitions"),
            "configs": self.link(*at, "configs"),
            "partition_reassignments": self.link(*at, "partitions", "-", "reassignment"),
        }

    def of_topic_config(self, topic: str, found: Config) -> Body:
        at = ("topics", topic, "configs", found.key)
        named = ("topic", topic, "config", found.key)
        return self._config("KafkaTopicConfig", at, named, found) | {"topic_name": topic}

    def of_broker_config(self, broker: int, found: Config) -> Body:
        at = ("brokers", broker, "configs", found.key)
        named = ("broker", broker, "config", found.key)
        return self._config("KafkaBrokerConfig", at, named, found) | {"broker_id": broker}

    def of_cluster_config(self, found: Config) -> Body:
        at, named = ("broker-configs", found.key), ("broker-config", found.key)
        return self._config("KafkaClusterConfig", at, named, found) | {"config_type": "BROKER"}

    def of_partition(self, topic: str, found: Partition) -> Body:
        at = ("topics", topic, "partitions", found.index)
        named = ("topic", topic, "partition", found.index)
        leader = found.leader
        return self._item("KafkaPartition", at, named) | {
            "topic_name": topic,
            "partition_id": found.index,
            **({} if leader is None else {"leader": self.link(*at, "replicas", leader)}),
            "replicas": self.link(*at, "replicas"),
            "reassignment": self.link(*at, "reassignment"),
        }

    def of_offsets(self, place: Place, first: int, end: int) -> Body:
        at = ("topics", place.topic, "partitions", place.partition, "offset")
        named = ("topic", place.topic, "partition", place.partition)
        return self._item("KafkaPartitionWithOffsets", at, named) | {
            "topic_name": place.topic,
            "partition_id": place.partition,
            "earliest_offset": first,
            "latest_offset": end,
        }

    def of_replica(self, topic: str, partition: Partition, broker: int) -> Body:
        at = ("topics", topic, "partitions", partition.index, "replicas", broker)
        named = ("topic", topic, "partition", partition.index, "replica", broker)
        return self._item("KafkaReplica", at, named) | {
            "topic_name": topic,
            "partition_id": partition.index,
            "broker_id": broker,
            "is_leader": partition.leader == broker,
            "is_in_sync": broker in partition.isr,
            "broker": self.link("brokers", broker),
        }

    def of_group(self, found: Group, *, is_simple: bool) -> Body:
        at = ("consumer-groups", found.name)
        return self._item("KafkaConsumerGroup", at, ("consumer-group", found.name)) | {
            "consumer_group_id": found.name,
            "is_simple": is_simple,
            "partition_assignor": found.assignor,
            "state": found.state.name,
            "type": found.type.name,
            "is_mixed_consumer_group": found.is_mixed,
            # If it is unknown: a URL that answers 404.
            "coordinator": self.link(
                "brokers", -1 if found.coordinator is None else found.coordinator
            ),
            "consumers": self.link(*at, "consumers"),
            "lag_summary": self.link(*at, "lag-summary"),
        }

    def of_consumer(self, group: str, found: Member) -> Body:
        at = ("consumer-groups", group, "consumers", found.id)
        named = ("consumer-group", group, "consumer", found.id)
        return self._item("KafkaConsumer", at, named) | {
            "consumer_group_id": group,
            "consumer_id": found.id,
            "instance_id": found.instance_id,
            "client_id": found.client_id,
            "assignments": self.link(*at, "assignments"),
        }

    def of_assignment(self, group: str, member: Member, place: Place) -> Body:
        spot = (place.topic, "partitions", place.partition)
        at = ("consumer-groups", group, "consumers", member.id, "assignments", *spot)
        named = ("consumer-group", group, "consumer", member.id, "assignment", place.topic)
        return self._item("KafkaConsumerAssignment", at, (*named, "partition", place.partition)) | {
            "consumer_group_id": group,
            "consumer_id": member.id,
            "topic_name": place.topic,
            "partition_id": place.partition,
            "partition": self.link("topics", *spot),
            "lag": self.link("consumer-groups", group, "lags", *spot),
        }

    def of_lag(self, group: str, row: LagRow) -> Body:
        place, member = row.place, row.member
        at = ("consumer-groups", group, "lags", place.topic, "partitions", place.partition)
        named = ("consumer-group", group, "lag", place.topic, "partition", place.partition)
        return self._item("KafkaConsumerLag", at, named) | {
            "consumer_group_id": group,
            "topic_name": place.topic,
            "partition_id": place.partition,
            "current_offset": row.committed,
            "log_end_offset": row.end,
            "lag": row.lag,
            "consumer_id": "" if member is None else member.id,
            "instance_id": None if member is None else member.instance_id,
            "client_id": "" if member is None else member.client_id,
        }

    def of_lag_summary(self, group: str, rows: Sequence[LagRow]) -> Body:
        """Return the sum and the place of the largest lag; there is at least one row."""
        worst = max(rows, key=lambda row: row.lag)
        place, member = worst.place, worst.member
        at, named = ("consumer-groups", group, "lag-summary"), ("consumer-group", group)
        consumer = "" if member is None else member.id
        return self._item("KafkaConsumerGroupLagSummary", at, named) | {
            "consumer_group_id": group,
            "max_lag_consumer_id": consumer,
            "max_lag_instance_id": None if member is None else member.instance_id,
            "max_lag_client_id": "" if member is None else member.client_id,
            "max_lag_topic_name": place.topic,
            "max_lag_partition_id": place.partition,
            "max_lag": worst.lag,
            "total_lag": sum(row.lag for row in rows),
            "max_lag_consumer": self.link(
                "consumer-groups", group, "consumers", *([consumer] if consumer else [])
            ),
            "max_lag_partition": self.link("topics", place.topic, "partitions", place.partition),
        }

    def of_acl(self, rule: AclRule) -> Body:
        words = {
            "resource_type": rule.resource_type,
            "resource_name": rule.resource_name or "",
            "pattern_type": rule.pattern_type,
            "principal": rule.principal or "",
            "host": rule.host or "",
            "operation": rule.operation,
            "permission": rule.permission,
        }
        query = "&".join(f"{name}={quoted(value)}" for name, value in words.items())
        body = self._item("KafkaAcl", ("acls",), ())
        body["metadata"]["self"] += f"?{query}"
        return body | words

    def _config(self, kind: str, at: Sequence[Name], named: Sequence[Name], found: Config) -> Body:
        return self._item(kind, at, named) | {
            "name": found.key,
            "value": found.value,
            "is_default": found.is_default,
            "is_read_only": found.is_read_only,
            "is_sensitive": found.is_sensitive,
            "source": source(found.source),
            "synonyms": [
                {"name": one.key, "value": one.value, "source": source(one.source)}
                for one in found.synonyms
            ],
        }

    def _item(self, kind: str, at: Sequence[Name], named: Sequence[Name]) -> Body:
        """Return the fields that every item starts with: its URL, and its resource name."""
        pairs = ["kafka", self.cluster, *named]
        crn = "/".join(
            f"{name}={quoted(value)}" for name, value in zip(pairs[::2], pairs[1::2], strict=True)
        )
        return {
            "kind": kind,
            "metadata": {"self": self.url(*at), "resource_name": f"crn:///{crn}"},
            "cluster_id": self.cluster,
        }

    def _listed(self, kind: str, items: Iterable[Body], address: str) -> Body:
        return {
            "kind": f"{kind}List",
            "metadata": {"self": address, "next": None},
            "data": list(items),
        }


def quoted(name: Name) -> str:
    return quote(str(name), safe="-")


def source(word: str) -> str:
    """Return Kafka's name of a config source, in the words of the interface."""
    return word if word in CONFIG_SOURCES else "UNKNOWN"


def lag_rows(
    committed: Mapping[Place, int], ends: Mapping[Place, tuple[int, int]], members: Iterable[Member]
) -> list[LagRow]:
    """Return a row for each committed place whose end is known."""
    readers = {place: member for member in members for place in member.assignment}
    return [
        LagRow(place=place, committed=offset, end=ends[place][1], member=readers.get(place))
        for place, offset in sorted(committed.items())
        if place in ends
    ]
