"""Defines the settings of groups: a broker's configs under Kafka's names, and Samsa's own limits.

Pure values; validation and the source of a broker's configs are elsewhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

_MAX_INT32: Final = 2**31 - 1

MINUTE_MS: Final = 60_000

# The time of a new classic member until its first response: it does not know its id yet, and so
# cannot send heartbeats.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
# Members of one group, including issued ids with which no member has joined yet.
MAX_MEMBERS: Final = 10_000
# Group ids, member ids and instance ids: they are in keys, which every replica keeps in memory.
MAX_ID_BYTES: Final = 4_096
# The limits of one classic member: assignment protocols, and its metadata for each of them.
MAX_PROTOCOLS: Final = 100
MAX_MEMBER_METADATA_BYTES: Final = 1 << 20
# The limits of one member's subscription in the consumer protocol.
MAX_SUBSCRIBED_TOPICS: Final = 10_000
MAX_REGEX_BYTES: Final = 4_096
# Different regular expressions in one group: each is matched with the names of all topics.
MAX_REGEXES: Final = 100
# Groups in one response of ListGroups.
MAX_LISTED: Final = 100_000


class MigrationPolicy(Enum):
    """Whether a group in use may change between the classic and the consumer protocol."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        return self in {MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL}

    @property
    def allows_downgrade(self) -> bool:
        return self in {MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL}


# Kafka's name of each number, by its field in GroupSettings.
KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "offsets_partitions": "offsets.topic.num.partitions",
        "offsets_segment_bytes": "offsets.topic.segment.bytes",
        "offsets_replication_factor": "offsets.topic.replication.factor",
        "offset_metadata_max_units": "offset.metadata.max.bytes",
        "offsets_retention_minutes": "offsets.retention.minutes",
        "offsets_check_interval_ms": "offsets.retention.check.interval.ms",
        "commit_timeout_ms": "offsets.commit.timeout.ms",
        "initial_rebalance_delay_ms": "group.initial.rebalance.delay.ms",
        "min_session_timeout_ms": "group.min.session.timeout.ms",
        "max_session_timeout_ms": "group.max.session.timeout.ms",
        "max_size": "group.max.size",
        "consumer_session_timeout_ms": "group.consumer.session.timeout.ms",
        "consumer_heartbeat_interval_ms": "group.consumer.heartbeat.interval.ms",
        "consumer_max_size": "group.consumer.max.size",
        "assignment_interval_ms": "group.consumer.assignment.interval.ms",
        "regex_refresh_interval_ms": "group.consumer.regex.refresh.interval.ms",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The coordinator's settings. One instance for the life of a broker."""

    offsets_partitions: int = 50
    offsets_segment_bytes: int = 104_857_600
    offsets_replication_factor: int = 3
    offset_metadata_max_units: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_check_interval_ms: int = 600_000
    commit_timeout_ms: int = 5_000
    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = _MAX_INT32
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = _MAX_INT32
    assignment_interval_ms: int = 1_000
    regex_refresh_interval_ms: int = 600_000
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    @classmethod
    def from_numbers(
        cls,
        number: Callable[[str], int],
        migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL,
    ) -> "GroupSettings":
        """Read the keys of the table with `number`; the caller has checked the values."""
        told = {name: number(key) for name, key in KEYS.items()}
        return cls(**told, migration_policy=migration_policy)

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * MINUTE_MS
