"""Serves the cluster's metadata from the database to the brokers of one host.

Keeps what it has read in memory, so that brokers are served, and know their cluster, while the
database is away. A database that was restored from an older copy is not followed, but still read:
it is followed again as soon as it knows the position that was read last.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from django.db import DatabaseError

from brokers.clock import Clock
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.proposals import Outcome, Proposal
from brokers.cluster.store import MetadataRegressed
from brokers.controlplane import services
from brokers.controlplane.feed import Feed
from brokers.controlplane.history import Entry, History, Unreadable
from brokers.controlplane.issued_ids import IssuedIds
from brokers.controlplane.lanes import Busy, Lane, Lanes
from brokers.controlplane.logs import log
from brokers.controlplane.reading import News, check_known, read_all, read_news
from brokers.controlplane.writes import Writes

# How soon to retry the database, and the limit of the growing pauses.
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0
# How long a proposal waits for a database that is away; then its broker is told to retry.
PATIENCE_S: Final = 3.0
# How often to read a database that was restored from an older copy, and to skip unreadable changes
# by reading everything: both take up to a second of a thread.
READ_AGAIN_S: Final = 1.0

T = TypeVar("T")


class OrmStore:
    """See the module. Belongs to one loop; call `start` first and `close` at the end."""

    def __init__(self, *, cluster_id: str, clock: Clock, feed: Feed) -> None:
        self.cluster_id = cluster_id
        self.regressed: MetadataRegressed | None = None
        self._clock = clock
        self._feed = feed
        self.lanes = Lanes()
        self._known: History | None = None
        self._read_at = clock.monotonic()
        self._is_away = False
        self.issued = IssuedIds()
        self.writes = Writes(clock)
        # Set if there may be changes to read.
        self._woken = asyncio.Event()
        # Set, and replaced, whenever the image advances or `regressed` changes.
        self._moved = asyncio.Event()

    async def start(self) -> None:
        """Read everything; wait for the database without a limit."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                await self._begin()
            except ConnectionError as error:
                self._note_away(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
            else:
                return

    async def run(self) -> None:
        """Follow the database until cancelled."""
        pause = FIRST_PAUSE_S
        is_open = True
        while True:
            try:
                if not is_open:
                    await self._open_feed()
                    is_open = True
                await self._wait_for_news()
                await self._catch_up()
                pause = FIRST_PAUSE_S
            except Busy:
                # The database is healthy; the read is repeated.
                await asyncio.sleep(pause)
                self._woken.set()
            except ConnectionError as error:
                self._note_away(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                # They may be dead without an error, or belong to a file that was replaced.
                self.lanes.reconnect()
                is_open = False
            except MetadataRegressed as regressed:
                self._refuse(regressed)
                await asyncio.sleep(READ_AGAIN_S)
                self.lanes.reconnect()
                is_open = False

    async def close(self) -> None:
        self._feed.detach()
        with suppress(ConnectionError):
            await self.lanes.feed.run(self._feed.close)
        await self.lanes.close()

    @property
    def image(self) -> ClusterImage:
        return self._history.image

    @property
    def read_age_ms(self) -> int:
        """The time since the database last answered."""
        return int(1000 * (self._clock.monotonic() - self._read_at))

    @property
    def moved(self) -> asyncio.Event:
        """An event that is set when the image advances, or `regressed` changes."""
        return self._moved

    def check(self, position: Position) -> None:
        """Raise MetadataRegressed if this store never had a position."""
        self._history.is_known(position)

    async def updates(self, after: Position) -> AsyncGenerator[ClusterImage | Entry, None]:
        """Yield the updates after a position, as `MetadataStore.follow` does, but encoded."""
        position = after
        can_go_on = self._history.is_known(after)
        while True:
            moved, history = self._moved, self._history
            entry = history.next_after(position) if can_go_on else None
            if entry is not None:
                position = entry.position
                yield entry
            elif not can_go_on or position.version < history.position.version:
                # The reader is new, or so slow that its changes are gone.
                can_go_on, position = True, history.position
                yield history.image
            else:
                await moved.wait()

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        """Propose in one transaction; retry it, unchanged, while the database is away briefly.

        A database that was restored from an older copy is not used: all proposals are refused.
        """
        if self.regressed is not None:
            refusal = Outcome(
                error=self.regressed.code,
                message=self.regressed.message,
                version=self.image.version,
            )
            return [refusal] * len(proposals)
        doubts = self.issued.doubts
        try:
            outcomes = await self._propose(proposals)
        except MetadataRegressed as regressed:
            self._refuse(regressed)
            self._woken.set()
            return await self.propose(proposals)
        self.issued.take(outcomes, doubts=doubts)
        self._woken.set()
        return outcomes

    def _proposed(self, proposals: Sequence[Proposal], now_ms: int) -> list[Outcome]:
        """Make one attempt of `propose`, in the database's thread."""
        self._check_known()
        return services.propose(
            cluster_id=self.cluster_id, proposals=self.issued.amended(proposals), now_ms=now_ms
        )

    async def write(self, service: Callable[..., T], **arguments: Any) -> T:  # noqa: ANN401
        """Run a service for the membership of brokers, once, with its own arguments."""
        return await self._run(self.lanes.liveness, None, service, arguments)

    async def prove(self, *, agent_id: str) -> None:
        """Find out whether a change is possible now; write something only if the last one failed.

        A quiet cluster does not write to its database.
        """
        if self.regressed is not None:
            raise self.regressed
        with self.writes.attempt():
            await self.lanes.proposals.run(
                services.prove_writable,
                patience_s=PATIENCE_S,
                cluster_id=self.cluster_id,
                agent_id=agent_id,
                writes=self.writes.is_failing,
            )
        self._answered()

    async def enter(self, service: Callable[..., T], **arguments: Any) -> T:  # noqa: ANN401
        """Run a service that is not urgent, once, in the lane of proposals, with its arguments."""
        return await self._run(self.lanes.proposals, PATIENCE_S, service, arguments)

    async def _run(
        self,
        lane: Lane,
        patience_s: float | None,
        service: Callable[..., T],
        arguments: Mapping[str, Any],
    ) -> T:
        if self.regressed is not None:
            raise self.regressed

        def checked(**asked: Any) -> T:  # noqa: ANN401
            self._check_known()
            return service(**asked)

        with self.writes.attempt():
            done = await lane.run(
                checked,
                patience_s=patience_s,
                cluster_id=self.cluster_id,
                now_ms=self._clock.now_ms(),
                **arguments,
            )
        self._answered()
        self._woken.set()
        return done

    def _check_known(self) -> None:
        """Check, on the connection that will write, the position that was read last."""
        check_known(cluster_id=self.cluster_id, position=self._history.position)

    async def ask(
        self, question: Callable[..., T], *, patience_s: float = 0, **arguments: object
    ) -> T:
        """Run a read-only query; ConnectionError while the database is away."""
        if self.regressed is not None:
            raise self.regressed
        deadline = self._clock.monotonic() + patience_s
        pause = FIRST_PAUSE_S
        while True:
            try:
                return await self._read(question, **arguments)
            except ConnectionError:
                if self._clock.monotonic() + pause >= deadline:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        deadline = self._clock.monotonic() + PATIENCE_S
        pause = FIRST_PAUSE_S
        while True:
            try:
                with self.writes.attempt():
                    outcomes = await self.lanes.proposals.run(
                        self._proposed,
                        patience_s=max(0.0, deadline - self._clock.monotonic()),
                        proposals=proposals,
                        now_ms=self._clock.now_ms(),
                    )
            except ConnectionError as error:
                self._doubt(error)
                if self._clock.monotonic() + pause >= deadline:
                    # This attempt may have been too short to learn the reason.
                    raise ConnectionError(self.writes.last_refusal) from error
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
            else:
                self._answered()
                return outcomes

    async def _read(self, question: Callable[..., T], **arguments: object) -> T:
        try:
            answer = await self.lanes.feed.run(question, patience_s=None, **arguments)
        except ConnectionError as error:
            self._doubt(error)
            raise
        self._answered()
        return answer

    def _doubt(self, error: ConnectionError) -> None:
        """Expect an older copy if the database did not answer; a held lock is no sign of one."""
        if not isinstance(error, Busy):
            self.issued.doubt()

    def _answered(self) -> None:
        self._read_at = self._clock.monotonic()

    @property
    def _history(self) -> History:
        assert self._known is not None, "the store has been started"
        return self._known

    async def _begin(self) -> None:
        await self._open_feed()
        self._take(await self._read(read_all, cluster_id=self.cluster_id))

    async def _open_feed(self) -> None:
        self._feed.detach()
        await self._read(self._feed.open)
        self._feed.attach(self._woken)
        # Changes may have come before the feed was attached.
        self._woken.set()

    async def _wait_for_news(self) -> None:
        """Wait until there may be changes."""
        while not self._woken.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._feed.poll_s):
                    await self._woken.wait()
                    break
            try:
                if self._feed.has_news():
                    break
            except DatabaseError as error:
                raise ConnectionError(str(error)) from error
            self._read_at = self._clock.monotonic()
        self._woken.clear()

    async def _catch_up(self) -> None:
        """Read until there are no more changes."""
        while True:
            position = self._history.position
            news: News = await self._read(read_news, cluster_id=self.cluster_id, after=position)
            self._note_back()
            if news.is_lost:
                self._take(await self._read(read_all, cluster_id=self.cluster_id))
            elif not news.entries:
                return
            elif not self._append(news.entries):
                await self._pass_over()
            self._announce()

    def _append(self, entries: Sequence[Entry]) -> bool:
        """Append changes to the history; False: this code cannot read one of them."""
        for entry in entries:
            try:
                self._history.append(entry)
            except Unreadable as unreadable:
                log.limited(
                    "change.unreadable",
                    version=entry.position.version,
                    error=str(unreadable),
                    advice="update this host to the version that the others run; until then the "
                    "agent reads the whole cluster instead",
                )
                return False
        return True

    async def _pass_over(self) -> None:
        """Read everything instead of unreadable changes, and do not pass those on."""
        history = await self._read(read_all, cluster_id=self.cluster_id)
        history.forget_changes()
        self._take(history)
        # A host that writes such changes without a pause must not make this one read permanently.
        await asyncio.sleep(READ_AGAIN_S)

    def _take(self, history: History) -> None:
        self._known = history
        self._note_back()
        self._announce()

    def _announce(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _note_away(self, error: ConnectionError) -> None:
        if not self._is_away:
            log.warning("database.lost", error=str(error).strip())
        self._is_away = True
        self._doubt(error)

    def _note_back(self) -> None:
        if self._is_away:
            log.info("database.returned", version=self._history.position.version)
        self._is_away = False
        if self.regressed is not None:
            log.info("metadata.healed", version=self._history.position.version)
            self.regressed = None
            self._announce()

    def _refuse(self, regressed: MetadataRegressed) -> None:
        """Stop following the database; the metadata read before stays valid, and brokers serve."""
        if self.regressed is None:
            log.error("metadata.regressed", error=regressed.message)
        self.regressed = regressed
        self.issued.doubt()
        self._announce()
