"""Defines proposals to change the metadata, and their outcomes.

Pure values. A proposal has an id made by its sender; the store keeps it with the change, so that a
proposal repeated after a lost connection gets the first outcome and is never done twice. An
accepted proposal changes nothing at its sender: state moves when its change arrives.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from brokers.cluster.image import ResourceType
from brokers.protocol.errors import ErrorCode

# Most proposals of one call; each call is one transaction.
MAX_PROPOSALS = 500
# Characters of a client id that are kept; with 500 of them a call still fits into one frame.
MAX_CLIENT_ID_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    name: str
    partitions: int = -1  # -1: the cluster's default
    replication_factor: int = -1  # -1: the cluster's default
    # Replicas of every partition, instead of both numbers.
    assignments: tuple[tuple[int, ...], ...] | None = None
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic:
    """By id if there is one, else by name."""

    name: str | None = None
    topic_id: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitions:
    name: str
    count: int  # in all, not more
    assignments: tuple[tuple[int, ...], ...] | None = None  # of the new ones


class ConfigOperation(IntEnum):
    """Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEdit:
    key: str
    operation: ConfigOperation = ConfigOperation.SET
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigs:
    resource_type: ResourceType
    name: str
    edits: tuple[ConfigEdit, ...]
    # The older AlterConfigs: unsets all keys that are not named.
    replaces_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIds:
    """Requests a block of producer ids that no other broker ever gets.

    An agent of an older checkout ignores both fields and uses its counter alone.
    """

    # The highest id that the broker has seen; the block begins above it.
    highest_seen: int = -1
    # How many ids to skip. Set by the agent, which cannot know the blocks of absent brokers.
    skip: int = 0


Action: TypeAlias = (
    CreateTopic | DeleteTopic | CreatePartitions | AlterConfigs | AllocateProducerIds
)


class Subject(IntEnum):
    """The kinds of objects that have a version of their own: the last change of their row."""

    TOPIC = 1  # with its partitions
    TOPIC_CONFIGS = 2
    BROKER = 3  # its registration, and whether it is fenced
    BROKER_CONFIGS = 4  # the empty name: the default of all brokers


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An object that a proposal depends on, at its expected version; 0 if it did not exist."""

    subject: Subject
    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    id: bytes  # 16 random bytes
    action: Action
    actor: str  # the principal on whose behalf, for the audit
    # Check everything and return the outcome as if it were done, but change nothing.
    validate_only: bool = False
    broker_id: int = -1  # the proposer, which must hold its current epoch and be unfenced
    broker_epoch: int = -1  # -1 with id -1: an operator, who needs no epoch
    # The origin, for the audit; an agent of an older checkout ignores these.
    client_id: str = ""
    address: str = ""  # IP, without the port
    session: str = ""  # a digest of the browser's session key
    # Refused unless all of these hold; needs levels.EXPECTS_LEVEL.
    expects: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult:
    """The result of CreateTopic, DeleteTopic and CreatePartitions."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsResult:
    first: int
    count: int


Result: TypeAlias = TopicResult | ProducerIdsResult | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one proposal. `version` is the change's if accepted, else the store's then."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    version: int = 0
    result: Result = None
