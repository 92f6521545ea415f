"""Defines the interface of a metadata store, as brokers use it.

One contract, several keepers: the ORM store on SQLite and on PostgreSQL, the twin in memory that
tests and simulations use, and the link over a unix socket to this host's agent, which is all that a
real broker ever sees. All pass the same suite in tests/contracts.
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
    """How an incarnation of a broker makes itself known."""

    incarnation: bytes  # 16 random bytes, made at process start
    host: str
    port: int
    broker_id: int = -1  # from meta.properties; -1: never registered, give it one
    cluster_id: str = ""  # from meta.properties; empty: any
    log_dir_id: bytes = bytes(16)
    rack: str | None = None
    inspection_port: int = 0
    boot_id: str = ""
    pid: int = 0
    # The epoch in the clean-shutdown mark, -1 where the mark had none, None after an unclean end.
    clean_epoch: int | None = None
    # The last position that arrived here, in this life or one before; version 0: none is known.
    applied_version: int = 0
    applied_id: bytes = NO_ID
    # The id that a broker without one would like, unless somebody has it.
    wanted_id: int = -1
    # The highest producer id that is or was in a log here, or in a block that was given to this
    # broker; the store's counter goes above it. An agent of an older checkout ignores it.
    highest_producer_id: int = -1
    # The metadata level that this code knows; the first where it says none.
    metadata_level: int = 1

    @property
    def position(self) -> Position:
        return Position(version=self.applied_version, id=self.applied_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    broker_id: int
    broker_epoch: int
    cluster_id: str
    # The broker leads and serves once it has applied this version.
    version: int


Update: TypeAlias = ClusterImage | Change


class MetadataRegressed(KafkaError):
    """The store does not know a position that a broker has applied: it was set back in time.

    Nothing is elected, changed or deleted on its word until an operator decides. Kafka has no
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
        """Return what another process refused with."""
        error = cls.__new__(cls)
        KafkaError.__init__(error, ErrorCode.POSITION_OUT_OF_RANGE, message)
        return error


class MetadataStore(Protocol):
    """KafkaError from every call carries why; ConnectionError means: not now, ask again later."""

    async def register(self, registration: Registration) -> Registered:
        """Begins a new session of this broker. The same incarnation again gets the same epoch.

        DUPLICATE_BROKER_REGISTRATION while another incarnation of the id is alive,
        INCONSISTENT_CLUSTER_ID where the broker belongs to another cluster, MetadataRegressed where
        the store never had the position that the broker has seen; then nothing is written.
        """
        ...

    def follow(self, after: Position) -> AsyncIterator[Update]:
        """All that happens after a position, in order and without gaps, for ever.

        Begins with a whole image where the changes since then are gone or `after` is Position().
        MetadataRegressed where the store never had that position.
        """
        ...

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        """One outcome for each, in order; at most MAX_PROPOSALS."""
        ...

    def applied(self, version: int) -> None:
        """The broker has applied all changes up to this version; whoever waits for it may know."""
        ...
