"""A host's half of the control plane in one loop: store, membership, and brokers that attach.

The same objects that the agent is made of, without its process and its socket.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from brokers.clock import Clock, SystemClock
from brokers.cluster.apply import apply
from brokers.cluster.image import Broker, ClusterImage, Position
from brokers.cluster.proposals import Action, Outcome, Proposal
from brokers.cluster.store import Registered, Registration
from tests.database import project_home

project_home()

# Models can be imported only after the project is set up.
from django.db import connections  # noqa: E402

from brokers.controlplane import services  # noqa: E402
from brokers.controlplane.feed import make_feed  # noqa: E402
from brokers.controlplane.membership import (  # noqa: E402
    Attachment,
    Membership,
    Watch,
    former_members,
    watch_nothing,
)
from brokers.controlplane.store import OrmStore  # noqa: E402

AGENT_ID = "agent-1"
NOW_MS = 1_700_000_000_000
NOWHERE = Position()
# How long a fact may take to come true on a busy machine.
SOON_S = 10.0


class Host:
    def __init__(
        self, store: OrmStore, membership: Membership, following: asyncio.Task[None]
    ) -> None:
        self.store = store
        self.membership = membership
        # Ends when the store stops believing its database.
        self.following = following

    def broker(self, broker_id: int = 1) -> Broker | None:
        return self.store.image.brokers.get(broker_id)

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Return when something is true of the image."""
        async with asyncio.timeout(SOON_S):
            while not is_true():
                await self.store.moved.wait()

    async def run_elsewhere(self, function: Callable[[], object]) -> None:
        """Run a function over another connection, as another process would."""

        def run() -> None:
            try:
                function()
            finally:
                connections.close_all()

        await asyncio.to_thread(run)


class LocalBroker:
    """A broker as its agent sees it: attaches, follows, reports what it has applied."""

    def __init__(self, host: Host, *, broker_id: int = -1, process: str = "") -> None:
        self.attachment = Attachment(host.membership, process=process)
        self.image: ClusterImage | None = None
        self.registered: Registered | None = None
        self._registration = Registration(
            incarnation=secrets.token_bytes(16), host="127.0.0.1", port=9092, broker_id=broker_id
        )
        self._host = host

    async def register(self) -> Registered:
        self.registered = await self.attachment.register(self._registration)
        return self.registered

    def again(self) -> "LocalBroker":
        """Return the same incarnation on a new link."""
        other = LocalBroker(self._host)
        assert self.registered is not None, "a broker comes again after it has come"
        other._registration = self._registration
        return other

    async def follow(self, after: Position = NOWHERE) -> None:
        async with aclosing(self.attachment.follow(after)) as updates:
            async for update in updates:
                if isinstance(update, ClusterImage):
                    self.image = update
                else:
                    assert self.image is not None, "changes follow an image"
                    self.image = apply(self.image, update)
                self.attachment.applied(self.image.version)

    async def propose(self, *actions: Action) -> list[Outcome]:
        assert self.registered is not None, "a broker registers before it proposes"
        return await self.attachment.propose(
            [
                Proposal(
                    id=secrets.token_bytes(16),
                    action=action,
                    actor="User:alice",
                    broker_id=self.registered.broker_id,
                    broker_epoch=self.registered.broker_epoch,
                )
                for action in actions
            ]
        )


@asynccontextmanager
async def running_host(
    cluster_id: str, *, clock: Clock | None = None, watch: Watch = watch_nothing
) -> AsyncIterator[Host]:
    clock = clock or SystemClock()
    store = OrmStore(cluster_id=cluster_id, clock=clock, feed=make_feed())
    membership = Membership(store, agent_id=AGENT_ID, clock=clock, watch=watch)
    await store.start()
    former = await store.ask(former_members, cluster_id=cluster_id, agent_id=AGENT_ID)
    membership.expect_former(former)
    tasks = [asyncio.create_task(store.run()), asyncio.create_task(membership.run())]
    try:
        yield Host(store, membership, tasks[0])
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        membership.close()
        await store.close()
        for end in ends:
            if isinstance(end, Exception):
                raise end


@asynccontextmanager
async def serving_broker(host: Host, *, process: str = "") -> AsyncIterator[LocalBroker]:
    """Attach a broker and let it be let in."""
    broker = LocalBroker(host, process=process)
    registered = await broker.register()
    following = asyncio.create_task(broker.follow())
    await host.until(lambda: is_serving(host, registered.broker_id))
    try:
        yield broker
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def is_serving(host: Host, broker_id: int = 1) -> bool:
    broker = host.broker(broker_id)
    return broker is not None and not broker.is_fenced


def new_cluster(name: str = "local") -> str:
    return services.ensure_cluster(name=name, now_ms=NOW_MS).cluster_id
