"""Configs of topics and brokers as Terraform's and Helm's modules for Kafka write them.

Each row is one definition, the error it must be refused with, and what is shown of it afterwards.
The same rows run against Apache Kafka, so that an expectation is never a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

ALL_BROKERS = ""
THE_BROKER = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """`broker` is None for the configs of a new topic; `refused` is Kafka's name of an error."""

    name: str
    configs: Mapping[str, str]
    broker: str | None = None
    refused: str = ""
    # What differs from the configs once they are shown.
    shown: Mapping[str, str | None] = field(default_factory=dict)


DEFINITIONS = (
    Definition(
        name="a topic with a retention, of Terraform's provider",
        configs={
            "cleanup.policy": "delete",
            "compression.type": "zstd",
            "min.insync.replicas": "1",
            "retention.bytes": "1073741824",
            "retention.ms": "604800000",
            "segment.ms": "86400000",
        },
    ),
    Definition(
        name="a compacted topic",
        configs={
            "cleanup.policy": "compact",
            "compression.type": "lz4",
            "delete.retention.ms": "3600000",
            "min.cleanable.dirty.ratio": "0.1",
            "segment.bytes": "104857600",
        },
    ),
    Definition(
        name="an archive",
        configs={
            "cleanup.policy": "compact,delete",
            "compression.gzip.level": "9",
            "compression.type": "gzip",
            "max.message.bytes": "5242880",
            "message.timestamp.type": "LogAppendTime",
            "retention.ms": "-1",
        },
    ),
    Definition(
        name="a topic of a Helm chart's provisioning",
        configs={
            "compression.type": "snappy",
            "flush.messages": "1",
            "max.message.bytes": "64000",
            "unclean.leader.election.enable": "false",
        },
    ),
    Definition(
        name="a topic that is not compressed",
        configs={"compression.type": "uncompressed", "preallocate": "false"},
    ),
    Definition(
        name="a codec that does not exist",
        configs={"compression.type": "brotli"},
        refused="INVALID_CONFIG",
    ),
    Definition(
        name="a retention in words", configs={"retention.ms": "7d"}, refused="INVALID_CONFIG"
    ),
    Definition(
        name="a topic config that does not exist",
        configs={"retention.hours": "7"},
        refused="INVALID_CONFIG",
    ),
    Definition(
        name="defaults of a chart for all brokers",
        broker=ALL_BROKERS,
        configs={
            "background.threads": "12",
            "compression.type": "producer",
            "log.cleaner.backoff.ms": "20000",
            "log.retention.ms": "604800000",
            "message.max.bytes": "2097152",
            "num.io.threads": "12",
        },
    ),
    Definition(
        name="throttles and limits of one broker",
        broker=THE_BROKER,
        configs={
            "follower.replication.throttled.rate": "10485760",
            "leader.replication.throttled.rate": "10485760",
            "max.connections": "10000",
            "max.connections.per.ip": "1000",
        },
    ),
    Definition(
        name="a broker config that Kafka does not know",
        broker=ALL_BROKERS,
        configs={"confluent.balancer.enable": "true"},
        shown={"confluent.balancer.enable": None},
    ),
    Definition(
        name="a broker config that needs a restart",
        broker=ALL_BROKERS,
        configs={"log.retention.hours": "24"},
        refused="INVALID_REQUEST",
    ),
    Definition(
        name="another config that needs a restart",
        broker=THE_BROKER,
        configs={"auto.create.topics.enable": "false"},
        refused="INVALID_REQUEST",
    ),
    Definition(
        name="one wrong value among right ones",
        broker=ALL_BROKERS,
        configs={"log.retention.ms": "1000", "num.io.threads": "many"},
        refused="INVALID_REQUEST",
    ),
)
