"""Defines which kinds of records and actions each metadata level adds.

Pure. A cluster has a metadata level. It rises once every registered agent and broker supports the
higher one, and never falls. A new kind of record or action gets the next level here, so that no
reader receives a kind it cannot read: below its level the kind is refused by name.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from brokers.cluster import changes, proposals
from brokers.cluster.changes import Record
from brokers.cluster.proposals import Action
from brokers.protocol.errors import ErrorCode, KafkaError

# The highest level of this code, and the level of code that reports none.
KNOWN_LEVEL: Final = 2
FIRST_LEVEL: Final = 1
# From this level on, all writers store versions of brokers and configurations, and check those that
# proposals expect.
EXPECTS_LEVEL: Final = 2
# More levels than there will be releases; a row holds any of them.
MAX_LEVEL: Final = 2**15 - 1
# How many members a refusal names.
MAX_LISTED: Final = 3

RECORD_LEVELS: Final[Mapping[type[Record], int]] = {
    changes.BrokerChanged: 1,
    changes.BrokerRemoved: 1,
    changes.TopicCreated: 1,
    changes.PartitionsAdded: 1,
    changes.PartitionChanged: 1,
    changes.TopicRemoved: 1,
    changes.ConfigsChanged: 1,
}
ACTION_LEVELS: Final[Mapping[type[Action], int]] = {
    proposals.CreateTopic: 1,
    proposals.DeleteTopic: 1,
    proposals.CreatePartitions: 1,
    proposals.AlterConfigs: 1,
    proposals.AllocateProducerIds: 1,
}


class LevelTooLow(KafkaError):
    """An action or record needs a higher metadata level than the cluster's; clients read why."""

    def __init__(self, kind: str, needed: int, level: int) -> None:
        super().__init__(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{kind} needs metadata level {needed} and the cluster is at {level}, because not "
            f"every registered agent and broker knows {needed} yet: update them",
        )
        self.needed = needed

    def held_back_by(self, names: Iterable[str]) -> KafkaError:
        """Return the same refusal with the names of those that hold the level back."""
        listed = list(names)
        more = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
        who = f" ({', '.join(listed[:MAX_LISTED])}{more})" if listed else ""
        return KafkaError(self.code, f"{self.message}{who}")


def check_action(action: Action, level: int) -> None:
    """Refuse an action above the cluster's level."""
    _check(type(action).__name__, ACTION_LEVELS[type(action)], level)


def check_expects(level: int) -> None:
    """Refuse a plan below the level at which all writers keep the versions that it expects."""
    _check("a plan", EXPECTS_LEVEL, level)


def check_records(records: Iterable[Record], level: int) -> None:
    """Refuse records above the cluster's level."""
    for kind in {type(record) for record in records}:
        _check(kind.__name__, RECORD_LEVELS[kind], level)


def check_member(name: str, known: int, level: int) -> None:
    """Refuse a member that cannot read all records of the cluster's level."""
    if known < level:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{name} knows metadata level {known} and the cluster is at {level}, which never "
            f"falls: start it from the newer checkout that the other hosts run",
        )


def _check(kind: str, needed: int, level: int) -> None:
    if needed > level:
        raise LevelTooLow(kind, needed, level)
