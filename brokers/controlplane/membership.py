"""Registers, unfences and fences the brokers of one host, and tracks which of them are alive.

Keeps the sessions of live brokers in memory (`sessions`) and writes only changes: a broker is
unfenced once it has applied its own registration, and fenced when its session ends. These writes
wait for the database, the newest wish per broker; a service called for an epoch that is over does
nothing, so a late wish is harmless.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final

from brokers.clock import Clock
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.proposals import Outcome, Proposal
from brokers.cluster.store import MetadataRegressed, Registered, Registration, Update
from brokers.controlplane import models, services
from brokers.controlplane.history import Entry
from brokers.controlplane.lanes import Busy
from brokers.controlplane.logs import log
from brokers.controlplane.sessions import SESSION_S, Session, Sessions
from brokers.controlplane.store import FIRST_PAUSE_S, LONGEST_PAUSE_S, OrmStore
from brokers.protocol.errors import ErrorCode, KafkaError

# How long an answer waits for the brokers of this host to apply its version: enough for all healthy
# ones, and a client's next request then finds its topic on any of them.
APPLIED_WITHIN_S: Final = 1.0
# Watches a process of this machine: takes its identity and a callback for its death, and returns a
# function that ends the watch, or None if the process is dead already.
Watch = Callable[[str, Callable[[], None]], Callable[[], None] | None]


def watch_nothing(_process: str, _when_dead: Callable[[], None]) -> Callable[[], None]:
    """Watch nothing, for brokers whose end only their link shows."""
    return lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Whether a broker shall be fenced, under the epoch it had when that was found."""

    broker_epoch: int
    is_fenced: bool


class Membership:
    """See the module. Belongs to one loop; `run` writes the wishes and ends sessions in time."""

    def __init__(
        self, store: OrmStore, *, agent_id: str, clock: Clock, watch: Watch = watch_nothing
    ) -> None:
        self.store = store
        self._agent_id = agent_id
        self._clock = clock
        self._watch = watch
        self._sessions = Sessions()
        # Incarnations, by the broker id that is being registered for them.
        self._coming: dict[int, bytes] = {}
        self._wishes: dict[int, Wish] = {}
        self._wished = asyncio.Event()
        # Set, and replaced, whenever a broker has applied a version.
        self._progressed = asyncio.Event()

    def expect_former(self, incarnations: Sequence[tuple[int, bytes, str]]) -> None:
        """Give each broker that was unfenced before this agent began a full session to come back.

        Each is an id, an incarnation and a process; one whose process is dead is fenced at once.
        """
        now = self._clock.monotonic()
        for broker_id, incarnation, process in incarnations:
            broker = self.store.image.brokers[broker_id]
            session = self._sessions.begin(
                broker_id, epoch=broker.epoch, incarnation=incarnation, now=now
            )
            self._watch_process(session, process)

    async def register(self, registration: Registration, *, process: str) -> Session:
        """Write a registration and begin its session."""
        if registration.position != Position():
            # Before anything is written: a store restored from an older copy would take the broker
            # for a new one, and make it forget what it knows.
            self.store.check(registration.position)
        registered = await self._write_registration(registration, process)
        former = self._sessions.of(registered.broker_id)
        # Begins by checking again, since others may have come in between; the latest row counts,
        # and a broker whose epoch is over may not propose.
        session = self._sessions.begin(
            registered.broker_id,
            epoch=registered.broker_epoch,
            incarnation=registration.incarnation,
            now=self._clock.monotonic(),
        )
        session.is_linked = True
        if former is not None:
            session.applied = former.applied
        # It was found dead while the database was away, but lives.
        self._wishes.pop(registered.broker_id, None)
        self._watch_process(session, process)
        log.info(
            "broker.registered",
            broker=registered.broker_id,
            epoch=registered.broker_epoch,
            address=f"{registration.host}:{registration.port}",
            is_clean=registration.clean_epoch is not None,
        )
        return session

    async def _write_registration(self, registration: Registration, process: str) -> Registered:
        """Write it, one incarnation of a broker at a time: the last one owns the row."""
        broker_id, incarnation = registration.broker_id, registration.incarnation
        if broker_id >= 0:
            self._sessions.refuse_second(broker_id, incarnation)
            self._refuse_elsewhere(registration)
            if self._coming.get(broker_id, incarnation) != incarnation:
                raise KafkaError(
                    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                    f"another process registers as broker {broker_id} just now: stop it, or give "
                    f"this one a log dir of its own",
                )
            self._coming[broker_id] = incarnation
        try:
            written: Registered = await self.store.write(
                services.register_broker,
                registration=registration,
                agent_id=self._agent_id,
                process=process,
            )
        finally:
            self._coming.pop(broker_id, None)
        self.store.issued.reported(registration.highest_producer_id)
        return written

    def answered(self, session: Session) -> None:
        if self._sessions.is_current(session):
            self._sessions.answered(session, self._clock.monotonic())

    def applied(self, session: Session, version: int) -> None:
        """Record the version that a broker has applied, and unfence it if that is new enough."""
        if not self._sessions.is_current(session):
            return
        session.applied = max(session.applied, version)
        self._progressed.set()
        self._progressed = asyncio.Event()
        broker = self.store.image.brokers.get(session.broker_id)
        is_let_in = broker is not None and broker.epoch == session.epoch and not broker.is_fenced
        if session.applied >= session.epoch and not is_let_in:
            self._wish(session, is_fenced=False)

    def unlinked(self, session: Session) -> None:
        """Handle a closed link; the session lasts until its time is over or its process is dead."""
        session.is_linked = False
        self._progressed.set()
        self._progressed = asyncio.Event()

    def session_of(self, broker_id: int) -> Session | None:
        return self._sessions.of(broker_id)

    def is_current(self, session: Session) -> bool:
        return self._sessions.is_current(session)

    def end(self, session: Session, reason: str) -> None:
        """End the session of a broker that is dead or counts as dead, and fence it."""
        if not self._sessions.is_current(session):
            return
        self._sessions.end(session.broker_id)
        session.is_linked = False
        log.info(
            "broker.session_ended", broker=session.broker_id, epoch=session.epoch, reason=reason
        )
        self._wish(session, is_fenced=True)

    async def wait_applied(self, version: int) -> None:
        """Wait until all unfenced brokers of this host applied a version, for a second at most.

        A broker that has not answered pings lately is not waited for.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(APPLIED_WITHIN_S):
                while self._lags(version):
                    await self._progressed.wait()

    def renew_all(self) -> None:
        """Restart the time of every session, after a while in which no broker could answer."""
        self._sessions.renew(self._clock.monotonic())

    async def run(self) -> None:
        """Write wishes until cancelled."""
        pause = FIRST_PAUSE_S
        while True:
            await self._wished.wait()
            self._wished.clear()
            try:
                await self._write_wishes()
                pause = FIRST_PAUSE_S
            except (ConnectionError, MetadataRegressed):
                # The store has logged it.
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                self._wished.set()

    def end_expired(self) -> None:
        for session in self._sessions.expired(self._clock.monotonic()):
            self.end(session, f"silent for {SESSION_S:g} s")

    def close(self) -> None:
        self._sessions.end_all()

    def _lags(self, version: int) -> bool:
        brokers = self.store.image.brokers
        return any(
            session.applied < version
            for session in self._sessions.prompt(self._clock.monotonic())
            if (broker := brokers.get(session.broker_id)) and not broker.is_fenced
        )

    def _watch_process(self, session: Session, process: str) -> None:
        if not process:
            return
        unwatch = self._watch(process, lambda: self.end(session, "process ended"))
        if unwatch is None:
            self.end(session, "process ended")
        else:
            session.unwatch = unwatch

    def _refuse_elsewhere(self, registration: Registration) -> None:
        """Refuse an id that another host's agent has unfenced: only that agent can find it dead."""
        broker = self.store.image.brokers.get(registration.broker_id)
        if broker and not broker.is_fenced and broker.agent_id != self._agent_id:
            raise KafkaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"broker {broker.id} is running on another host, at {broker.host}:{broker.port}: "
                f"stop it there first",
            )

    def _wish(self, session: Session, *, is_fenced: bool) -> None:
        self._wishes[session.broker_id] = Wish(broker_epoch=session.epoch, is_fenced=is_fenced)
        self._wished.set()

    async def _write_wishes(self) -> None:
        """Write every wish, fences first; Busy if another transaction locks the row of one."""
        busy: Busy | None = None
        tried: set[tuple[int, Wish]] = set()
        while waiting := {
            key: wish for key, wish in self._wishes.items() if (key, wish) not in tried
        }:
            broker_id = min(waiting, key=lambda key: not waiting[key].is_fenced)
            wish = waiting[broker_id]
            tried.add((broker_id, wish))
            try:
                await self._write_wish(broker_id, wish)
            except Busy as error:
                # The rows of the others may be free.
                busy = error
        if busy is not None:
            log.limited("broker.row_locked", error=str(busy))
            raise busy

    async def _write_wish(self, broker_id: int, wish: Wish) -> None:
        service = services.fence_broker if wish.is_fenced else services.unfence_broker
        is_done = await self.store.write(
            service, broker_id=broker_id, broker_epoch=wish.broker_epoch
        )
        # A newer wish may have come in the meantime.
        if self._wishes.get(broker_id) == wish:
            del self._wishes[broker_id]
        if is_done:
            event = "broker.fenced" if wish.is_fenced else "broker.unfenced"
            log.info(event, broker=broker_id, epoch=wish.broker_epoch)


class Attachment:
    """One broker's MetadataStore: the agent's end of its link, for one connection."""

    def __init__(self, membership: Membership, *, process: str = "") -> None:
        self._membership = membership
        self._process = process
        self.session: Session | None = None

    async def register(self, registration: Registration) -> Registered:
        session = await self._membership.register(registration, process=self._process)
        self.session = session
        return Registered(
            broker_id=session.broker_id,
            broker_epoch=session.epoch,
            cluster_id=self._membership.store.cluster_id,
            version=session.epoch,
        )

    async def follow(self, after: Position) -> AsyncGenerator[Update, None]:
        async with aclosing(self.updates(after)) as updates:
            async for update in updates:
                yield update.change if isinstance(update, Entry) else update

    def updates(self, after: Position) -> AsyncGenerator[ClusterImage | Entry, None]:
        return self._membership.store.updates(after)

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        """Answer once the brokers of this host have applied the change, or after a second."""
        outcomes = await self._membership.store.propose(proposals)
        done = [outcome.version for outcome in outcomes if not outcome.error]
        if done:
            await self._membership.wait_applied(max(done))
        return outcomes

    def applied(self, version: int) -> None:
        if self.session is not None:
            self._membership.applied(self.session, version)

    def answered(self) -> None:
        if self.session is not None:
            self._membership.answered(self.session)

    def close(self, *, is_dead: bool = False) -> None:
        """Close the attachment; `is_dead`: the broker is known to be gone."""
        if self.session is None or not self._membership.is_current(self.session):
            return
        self._membership.unlinked(self.session)
        if is_dead:
            self._membership.end(self.session, "process ended")


def former_members(*, cluster_id: str, agent_id: str) -> list[tuple[int, bytes, str]]:
    """Return the brokers that an agent unfenced when it ran last: id, incarnation, process."""
    rows = models.Broker.objects.filter(
        cluster__cluster_id=cluster_id, agent_id=agent_id, is_fenced=False
    )
    return [
        (broker_id, bytes(incarnation), process)
        for broker_id, incarnation, process in rows.values_list(
            "broker_id", "incarnation", "process"
        )
    ]
