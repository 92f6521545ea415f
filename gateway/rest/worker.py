"""Holds the shared objects of one process that serves programs, each created on first use.

Knows no paths: `mounts` has them. A package that needs a shared object adds a property here.
"""

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from channels import DEFAULT_CHANNEL_LAYER
from channels.layers import channel_layers
from django.conf import settings

from gateway.kafka.connection import Connection
from gateway.kafka.delivery import Deliveries
from gateway.kafka.pool import Pool
from gateway.kafka.readers.engine import Readers
from gateway.kafka.roster import Roster
from gateway.rest.codes import ApiError, Code
from gateway.rest.departures import Departures
from gateway.rest.incoming import Budget
from gateway.rest.passed import PassedCallers
from gateway.rest.router import Callers as AnyCallers
from gateway.rest.seats import Ledger
from gateway.rest.topic_creation import TopicCreation
from gateway.rest.traffic import Counter
from gateway.shared import hints
from gateway.shared.layer import SharedChannelLayer
from gateway.shared.store import Shared

if TYPE_CHECKING:
    from gateway.rest.callers import Callers
    from gateway.rest.sharing import Sharing

log: Final = logging.getLogger(__name__)
CLIENT_ID: Final = "samsa-gateway"
# The time for all parts to close their clients and threads concurrently; a librdkafka thread that
# hangs must not delay the end of a process.
CLOSE_SECONDS: Final = 2.0
# Names of processes that serve programs; other sockets are in the same directory.
WORKER: Final = re.compile(r"gateway-\d+|web")


class Part(Protocol):
    """An object of a worker that has to be closed. Both methods are called on the loop."""

    def drain(self) -> None:
        """Refuse new work, and end what is open with its final message; do not wait."""
        ...

    async def close(self) -> None:
        """Close clients and threads, within CLOSE_SECONDS."""
        ...


class Speaking(Part, Protocol):
    """A part with final messages that no one else awaits: open connections are cut after them."""

    async def said(self) -> None:
        """Return when all final messages are sent, or soon in any case."""
        ...


P = TypeVar("P", bound=Part)
S = TypeVar("S", bound=Speaking)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The location of a worker, and its start-up settings."""

    name: str
    home: Path
    # The directory of the sockets on which the workers of a home call each other.
    sockets: Path
    # Broker addresses; empty if the home's supervisor provides them.
    bootstrap: str = ""
    # The server that workers share; empty if each works alone.
    shared_url: str = ""

    @property
    def settings_file(self) -> Path:
        return self.home / "run" / "settings.json"

    @property
    def cluster_file(self) -> Path:
        return self.home / "cluster-id"

    @property
    def members(self) -> Path:
        """The folder in which each worker records its members of groups."""
        return self.home / "run" / "members"

    def socket_of(self, worker: str) -> Path:
        """Return the socket of another worker of this home."""
        return self.sockets / f"{worker}.sock"

    def others(self) -> Sequence[str]:
        """Return the names of the other workers of this home, some of which may have ended."""
        found = (path.stem for path in self.sockets.glob("*.sock"))
        return sorted(name for name in found if WORKER.fullmatch(name) and name != self.name)


class Worker:
    """Belongs to one event loop; properties that say so are thread-safe.

    A property whose object has to be closed is declared like this, and closed with the worker:

        @cached_property
        def readers(self) -> Readers:
            return self.held(Readers(self.connection))
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.name = place.name
        self.is_draining = False
        self._parts: list[Part] = []
        self._speaking: list[Speaking] = []

    # --- what calls share --------------------------------------------------------------------

    @cached_property
    def traffic(self) -> Counter:
        return Counter()

    @cached_property
    def callers(self) -> "Callers":
        # They read Django's models, which exist once Django is ready.
        from gateway.rest import callers, identity, limits  # noqa: PLC0415

        found = callers.Callers(
            identity.of_process(), limits.of_process(), trusted=settings.TRUSTED_PROXIES
        )
        return self.held(found)

    @cached_property
    def incoming(self) -> Budget:
        """The bodies that have not arrived, or are not done with, over all calls."""
        return Budget()

    @cached_property
    def passed_callers(self) -> AnyCallers:
        """The callers of passed calls, which another worker has authenticated and signed."""
        return PassedCallers()

    @cached_property
    def shared(self) -> Shared:
        return self.held(Shared(self.place.shared_url, cluster=self.cluster_id))

    @cached_property
    def layer(self) -> SharedChannelLayer:
        """The hints between processes, which Channels' `get_channel_layer` returns too."""
        layer = hints.layer_of(self.shared)
        layer.begin()
        channel_layers.set(DEFAULT_CHANNEL_LAYER, layer)
        return layer

    @cached_property
    def ledger(self) -> Ledger:
        """The seats of callers, which all workers count together."""
        return self.held(Ledger(self.name, lambda: self.shared))

    @cached_property
    def connection(self) -> Connection:
        """The brokers' addresses; UNAVAILABLE until one of them has started. Thread-safe."""
        bootstrap = self.place.bootstrap or told_by_supervisor(self.place.settings_file)
        if not bootstrap:
            raise ApiError(
                Code.UNAVAILABLE,
                "no broker has registered an address yet: try again in a second",
                retry_after_s=1,
            )
        return Connection(bootstrap=bootstrap, client_id=CLIENT_ID)

    @cached_property
    def deliveries(self) -> Deliveries:
        """The one producer of this process, for records to all topics."""
        return self.held(Deliveries(self.connection))

    @cached_property
    def readers(self) -> Readers:
        """All reads without a group."""
        return self.held(Readers(self.connection))

    @cached_property
    def roster(self) -> Roster:
        """The members of groups that this process has."""
        return Roster(self.place.members / self.name)

    @cached_property
    def departures(self) -> Departures:
        """The members of workers that were killed."""
        return self.held(
            Departures(
                self.place.members,
                self.name,
                connection=lambda: self.connection,
                socket_of=self.place.socket_of,
            )
        )

    @cached_property
    def cluster_id(self) -> str:
        """The id of the cluster. From any thread."""
        try:
            return self.place.cluster_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            raise ApiError(
                Code.UNAVAILABLE,
                "the agent has not reported the cluster id yet: try again in a second",
                retry_after_s=1,
            ) from None

    @cached_property
    def admins(self) -> Pool:
        """Admin clients for threads."""
        return self.held(Pool(lambda: self.connection))

    @cached_property
    def creation(self) -> TopicCreation:
        """The topics that calls create by writing to them."""
        return self.held(
            TopicCreation(
                self.admins,
                look_up=self.deliveries.topics.require,
                cluster_id=lambda: self.cluster_id,
                client_id=CLIENT_ID,
            )
        )

    @cached_property
    def sharing(self) -> "Sharing":
        """The exchange of callers' demand with the other workers."""
        from gateway.rest import limits, sharing  # noqa: PLC0415 - as `callers`

        return self.held(sharing.Sharing(self.name, limits.of_process(), self.shared))

    # --- life --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the background work; called on the loop, once it runs."""
        if self.is_draining:
            return
        self.departures.begin()
        if not self.place.shared_url:
            return
        try:
            self.callers.begin(self.layer)
            self.sharing.begin()
        except ApiError as error:
            # Without the cluster's id, limits are those of this worker alone.
            log.warning("worker.shares_no_limits error=%s", error)

    def held(self, part: P) -> P:
        """Register an object that ends with the worker."""
        self._parts.append(part)
        if self.is_draining:
            part.drain()
        return part

    def held_speaking(self, part: S) -> S:
        """Register an object that ends with the worker, after its final messages."""
        self._speaking.append(part)
        return self.held(part)

    def drain(self) -> None:
        """Refuse new work and end what is open; called before the server waits for its answers."""
        self.is_draining = True
        for part in self._parts:
            part.drain()

    async def said(self) -> None:
        """Wait for final messages; called after `drain`, before connections are cut."""
        for part in self._speaking:
            await part.said()

    async def close(self) -> None:
        """Close all parts; called when no answer is in progress any more."""
        if "layer" in self.__dict__:
            channel_layers.backends.pop(DEFAULT_CHANNEL_LAYER, None)
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(self._close_one(part))

    async def _close_one(self, part: Part) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await part.close()
        except Exception:
            # One part that fails must not keep the others from closing.
            log.exception("worker.part_not_closed part=%s", type(part).__name__)


class _Process:
    """Django creates a view for each call, without the worker."""

    worker: Worker | None = None


def take(worker: Worker | None) -> None:
    """Set the worker of this process; called once, before the first call."""
    _Process.worker = worker


def of_process() -> Worker:
    """Return the worker of this process. From any thread."""
    if _Process.worker is None:
        raise ApiError(
            Code.UNAVAILABLE,
            "this process is still starting: try again in a second",
            retry_after_s=1,
        )
    return _Process.worker


def told_by_supervisor(settings_file: Path) -> str:
    """Return the broker addresses that a home's supervisor has recorded; else an empty text."""
    try:
        told = json.loads(settings_file.read_text(encoding="utf-8"))
        return str(told.get("bootstrap") or "")
    except (OSError, ValueError, AttributeError):
        return ""
