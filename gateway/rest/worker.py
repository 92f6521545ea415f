"""One process that serves programs: one of each thing that its calls share, made when first used.

Knows no addresses: `mounts` has them. A room that needs something shared adds a property here.
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

from django.conf import settings

from gateway.kafka.connection import Connection
from gateway.kafka.delivery import Deliveries
from gateway.kafka.pool import Pool
from gateway.kafka.readers.engine import Readers
from gateway.rest.codes import ApiError, Code
from gateway.rest.passed import PassedCallers
from gateway.rest.router import Callers as AnyCallers
from gateway.rest.traffic import Counter
from gateway.shared.store import Shared

if TYPE_CHECKING:
    from gateway.rest.callers import Callers
    from gateway.rest.sharing import Sharing

log: Final = logging.getLogger(__name__)
CLIENT_ID: Final = "samsa-gateway"
# What parts have to let go of clients and threads, all at the same time; a thread of librdkafka
# that hangs must not keep a process that was told to go.
CLOSE_SECONDS: Final = 2.0
# The names of processes that serve programs; other sockets are in the same folder.
WORKER: Final = re.compile(r"gateway-\d+|web")


class Part(Protocol):
    """Something a worker holds that has an end. Both are called on the loop."""

    def drain(self) -> None:
        """Take nothing new, and end what is open with its last word; does not wait."""
        ...

    async def close(self) -> None:
        """Let go of clients and threads, within CLOSE_SECONDS."""
        ...


class Speaking(Part, Protocol):
    """A part with last words that nobody else waits for: what is open is cut after them."""

    async def said(self) -> None:
        """Return when all has been said, or soon in any case."""
        ...


P = TypeVar("P", bound=Part)
S = TypeVar("S", bound=Speaking)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a worker is, and what it is told at its start."""

    name: str
    home: Path
    # The folder of the sockets on which the workers of a home ask each other.
    sockets: Path
    # Addresses of brokers; empty where the home's supervisor tells them.
    bootstrap: str = ""
    # Where workers share what they own; empty where each is alone.
    shared_url: str = ""

    @property
    def settings_file(self) -> Path:
        return self.home / "run" / "settings.json"

    @property
    def cluster_file(self) -> Path:
        return self.home / "cluster-id"

    def socket_of(self, worker: str) -> Path:
        """Return where another worker of this home is asked."""
        return self.sockets / f"{worker}.sock"

    def others(self) -> Sequence[str]:
        """Return the names of the other workers of this home, some of which may have gone."""
        found = (path.stem for path in self.sockets.glob("*.sock"))
        return sorted(name for name in found if WORKER.fullmatch(name) and name != self.name)


class Worker:
    """Belongs to one event loop; what says so may be used from threads.

    A property that holds something which has an end is made so, and is ended with the worker:

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
        # They read Django's models, which are there once Django is ready.
        from gateway.rest import callers, identity, limits  # noqa: PLC0415

        found = callers.Callers(
            identity.of_process(), limits.of_process(), trusted=settings.TRUSTED_PROXIES
        )
        return self.held(found)

    @cached_property
    def passed_callers(self) -> AnyCallers:
        """Who calls that another worker has passed on; it has looked, and says so."""
        return PassedCallers()

    @cached_property
    def shared(self) -> Shared:
        return self.held(Shared(self.place.shared_url, cluster=self.cluster_id))

    @cached_property
    def connection(self) -> Connection:
        """Where the brokers are; UNAVAILABLE until one of them has said so. From any thread."""
        bootstrap = self.place.bootstrap or told_by_supervisor(self.place.settings_file)
        if not bootstrap:
            raise ApiError(
                Code.UNAVAILABLE,
                "no broker has told yet where it serves: try again in a second",
                retry_after_s=1,
            )
        return Connection(bootstrap=bootstrap, client_id=CLIENT_ID)

    @cached_property
    def deliveries(self) -> Deliveries:
        """The one producer of this process, for records to all topics."""
        return self.held(Deliveries(self.connection))

    @cached_property
    def readers(self) -> Readers:
        """Everybody who reads without a group."""
        return self.held(Readers(self.connection))

    @cached_property
    def cluster_id(self) -> str:
        """The id of the cluster. From any thread."""
        try:
            return self.place.cluster_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            raise ApiError(
                Code.UNAVAILABLE,
                "the agent has not told the cluster's id yet: try again in a second",
                retry_after_s=1,
            ) from None

    @cached_property
    def admins(self) -> Pool:
        """Clients for questions and changes, for threads."""
        return self.held(Pool(lambda: self.connection))

    @cached_property
    def sharing(self) -> "Sharing":
        """What keeps the limits of callers together with the other workers."""
        from gateway.rest import limits, sharing  # noqa: PLC0415 - as `callers`

        return self.held(sharing.Sharing(self.name, limits.of_process(), self.shared))

    # --- life --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin what goes on beside all calls; called on the loop, once it runs."""
        if not self.place.shared_url or self.is_draining:
            return
        try:
            self.sharing.begin()
        except ApiError as error:
            # Without the cluster's id; limits are this worker's own then.
            log.warning("worker.shares_no_limits error=%s", error)

    def held(self, part: P) -> P:
        """Keep something that ends with the worker."""
        self._parts.append(part)
        if self.is_draining:
            part.drain()
        return part

    def held_speaking(self, part: S) -> S:
        """Keep something that ends with the worker, and has its say before."""
        self._speaking.append(part)
        return self.held(part)

    def drain(self) -> None:
        """Take nothing new and end what is open; called before the server waits for its answers."""
        self.is_draining = True
        for part in self._parts:
            part.drain()

    async def said(self) -> None:
        """Wait for last words; called after `drain`, and before connections are cut."""
        for part in self._speaking:
            await part.said()

    async def close(self) -> None:
        """Let go of everything; called when no answer is under way any more."""
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(self._close_one(part))

    async def _close_one(self, part: Part) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await part.close()
        except Exception:
            # One part that fails must not keep the others from their end.
            log.exception("worker.part_not_closed part=%s", type(part).__name__)


def told_by_supervisor(settings_file: Path) -> str:
    """Return the addresses of brokers that a home's supervisor has recorded; else nothing."""
    try:
        told = json.loads(settings_file.read_text(encoding="utf-8"))
        return str(told.get("bootstrap") or "")
    except (OSError, ValueError, AttributeError):
        return ""
