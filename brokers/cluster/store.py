"""Defines the interface of a metadata store, as brokers use it.

It has several implementations: the ORM store on SQLite and on PostgreSQL, the link over a unix
socket to this host's agent, the only one that a real broker uses, and one in memory for tests. All
pass the same suite in tests/contracts.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

from brokers.cluster.changes import Change
from brokers.cluster.image import NO_ID, ClusterImage, Position
from brokers.cluster.proposals import Outcome, Proposal
from brokers.protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The registration of a broker's incarnation."""

    incarnation: bytes  # 16 random bytes, made at process start
    host: str
    port: int
    broker_id: int = -1  # from meta.properties; -1 if it never registered, to get one
    cluster_id: str = ""  # from meta.properties; empty for any
    log_dir_id: bytes = bytes(16)
    rack: str | None = None
    inspection_port: int = 0
    boot_id: str = ""
    pid: int = 0
    # The epoch in the clean-shutdown mark, -1 if the mark had none, None after an unclean end.
    clean_epoch: int | None = None
    # The last position that this broker applied, in this run or an earlier one; version 0 if none.
    applied_version: int = 0
    applied_id: bytes = NO_ID
    # The preferred id of a broker without one, used if it is free.
    wanted_id: int = -1
    # The highest producer id that is or was in a log here, or in a block of this broker; the
    # store's counter goes above it. An agent of an older checkout ignores it.
    highest_producer_id: int = -1
    # The metadata level of this code; the first if it is not given.
    metadata_level: int = 1

    @property
    def position(self) -> Position:
        return Position(version=self.applied_version, id=self.applied_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    broker_id: int
    broker_epoch: int
    cluster_id: str
    # The broker may lead and serve once it has applied this version.
    version: int


Update: TypeAlias = ClusterImage | Change


class MetadataRegressed(KafkaError):
    """The store lacks a position that a broker has applied: it was set back in time.

    Nothing is elected, changed or deleted because of it until an operator decides. Kafka has no
    code for it; this one never reaches a client.
    """

    def __init__(self, position: Position, store: Position) -> None:
        super().__init__(
            ErrorCode.POSITION_OUT_OF_RANGE,
            f"METADATA_REGRESSED: the store is at version {store.version} ({store.id.hex()}) and "
            f"does not know version {position.version} ({position.id.hex()}), which a broker has "
            f"applied: it was set back, for example by restoring an old copy. Bring back the newer "
            f"database, or start the brokers of this cluster on empty log dirs",
        )

    @classmethod
    def told(cls, message: str) -> Self:
        """Return the same error as received from another process."""
        error = cls.__new__(cls)
        KafkaError.__init__(error, ErrorCode.POSITION_OUT_OF_RANGE, message)
        return error


class MetadataStore(Protocol):
    """Every call may raise KafkaError with a reason; ConnectionError means to retry it later."""

    async def register(self, registration: Registration) -> Registered:
        """Begin a new session of this broker. The same incarnation again gets the same epoch.

        DUPLICATE_BROKER_REGISTRATION while another incarnation of the id is alive,
        INCONSISTENT_CLUSTER_ID if the broker belongs to another cluster, MetadataRegressed if the
        store lacks the position that the broker has applied; then nothing is written.
        """
        ...

    def follow(self, after: Position) -> AsyncIterator[Update]:
        """Yield all changes after a position, in order and without gaps, without end.

        Begins with a whole image if the changes since then are gone or `after` is Position().
        MetadataRegressed if the store lacks that position.
        """
        ...

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        """Return one outcome for each, in order; takes at most MAX_PROPOSALS."""
        ...

    def applied(self, version: int) -> None:
        """Report that the broker has applied all changes up to this version."""
        ...
