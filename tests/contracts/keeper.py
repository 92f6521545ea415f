"""What the contract of metadata stores is told in: keepers, brokers that read, proposals.

Waits for facts, never for time: whatever is asked of a keeper may be seen a little later.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from brokers.cluster.apply import apply
from brokers.cluster.changes import Change
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.plans import Plan
from brokers.cluster.proposals import (
    Action,
    Outcome,
    Proposal,
    TopicResult,
)
from brokers.cluster.store import (
    MetadataStore,
    Registered,
    Registration,
    Update,
)
from brokers.protocol.errors import ErrorCode

# Longer than any wait of a keeper that works.
PATIENCE_SECONDS = 20.0


class Keeper(Protocol):
    """A store under test, with an empty cluster."""

    cluster_id: str

    def attach(self) -> MetadataStore:
        """Return what one more broker process is given."""
        ...

    async def end(self, store: MetadataStore) -> None:
        """The process that was given it is dead, and the keeper knows."""
        ...

    async def forget(self) -> None:
        """Lose the changes so far: who is behind takes the whole image."""
        ...

    async def preview(self, actions: Sequence[Action]) -> Plan:
        """Return what actions would do, as the console asks for it."""
        ...


Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[Keeper]]
Case: TypeAlias = Callable[[Keeper], Awaitable[None]]


def case_name(case: Case) -> str:
    return getattr(case, "__name__", "case")


def check(case: Case, opened: Opened) -> None:
    """Run one case on a new keeper."""

    async def run() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), opened() as keeper:
            await case(keeper)

    asyncio.run(run())


# What cases are made of.


def new_id() -> bytes:
    return next(_ids).to_bytes(16, "big")


_ids = iter(range(1, 2**31))


def registration(broker_id: int = -1, **fields: object) -> Registration:
    known = Registration(incarnation=new_id(), host="broker.test", port=9092, broker_id=broker_id)
    return replace(known, **fields)  # type: ignore[arg-type]


def proposal(action: Action, **fields: object) -> Proposal:
    return replace(
        Proposal(id=new_id(), action=action, actor="User:alice"),
        **fields,  # type: ignore[arg-type]
    )


@dataclass
class Reader:
    """One broker: its door, what it was registered as, and the image that it has reached."""

    store: MetadataStore
    registered: Registered
    image: ClusterImage | None = None
    seen: list[Update] = field(default_factory=list)
    _updates: AsyncIterator[Update] | None = None

    async def step(self) -> Update:
        """Take one update and apply it."""
        if self._updates is None:
            after = Position() if self.image is None else self.image.position
            self._updates = self.store.follow(after)
        update = await anext(self._updates)
        self.seen.append(update)
        if isinstance(update, Change):
            assert self.image is not None, "a change came before any image"
            self.image = apply(self.image, update)
        else:
            self.image = update
        self.store.applied(self.image.version)
        return update

    async def reach(self, is_there: Callable[[ClusterImage], bool]) -> ClusterImage:
        """Take updates until the image is as it should be."""
        while self.image is None or not is_there(self.image):
            await self.step()
        return self.image

    async def close(self) -> None:
        updates, self._updates = self._updates, None
        if updates is not None:
            await updates.aclose()  # type: ignore[attr-defined]


async def joined(keeper: Keeper, asked: Registration | None = None) -> Reader:
    """Return a broker that has registered and been let in."""
    store = keeper.attach()
    reader = Reader(store, await store.register(asked or registration()))
    await reader.reach(lambda image: is_in(image, reader.registered))
    return reader


def is_in(image: ClusterImage, registered: Registered) -> bool:
    broker = image.brokers.get(registered.broker_id)
    return broker is not None and broker.epoch == registered.broker_epoch and not broker.is_fenced


async def done(store: MetadataStore, *actions: Action) -> list[Outcome]:
    outcomes = await store.propose([proposal(action) for action in actions])
    assert [outcome.error for outcome in outcomes] == [ErrorCode.NONE] * len(actions), outcomes
    return outcomes


async def refused(store: MetadataStore, action: Action, code: ErrorCode) -> Outcome:
    (outcome,) = await store.propose([proposal(action)])
    assert outcome.error is code, outcome
    assert outcome.message
    return outcome


def topic_result(outcome: Outcome) -> TopicResult:
    assert isinstance(outcome.result, TopicResult)
    return outcome.result
