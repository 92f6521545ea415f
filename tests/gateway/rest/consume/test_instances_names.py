"""Names of consumers while other workers answer, and while they do not."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from gateway.access.callers import Caller
from gateway.kafka.connection import Connection
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume.bodies import Draft
from gateway.rest.consume.instances import Instances
from tests.fakes.rest_door import WRITER

NAMED = Draft(name="mine")


class Claims:
    """Claims of two workers; they may be lost."""

    def __init__(self) -> None:
        self.owners: dict[str, str] = {}

    async def claim(self, _kind: str, name: str, *, owner: str, ttl_s: float) -> bool:
        assert ttl_s > 0
        return self.owners.setdefault(name, owner) == owner

    async def renew(
        self, kind: str, names: Sequence[str], *, owner: str, ttl_s: float
    ) -> Sequence[str]:
        return [
            name for name in names if not await self.claim(kind, name, owner=owner, ttl_s=ttl_s)
        ]

    async def owner_of(self, _kind: str, name: str) -> str | None:
        return self.owners.get(name)

    async def release(self, _kind: str, name: str, *, owner: str) -> None:
        if self.owners.get(name) == owner:
            del self.owners[name]


async def create_none(*_question: object) -> None:
    """Every topic is there."""


async def no_topics(*_question: object) -> Sequence[str]:
    return ()


Elsewhere = Callable[[Caller, str, str, str | None], Awaitable[bool]]


def instances(claims: Claims, has_elsewhere: Elsewhere) -> Instances:
    return Instances(
        "gateway-1",
        connection=lambda: Connection(bootstrap="127.0.0.1:1"),
        names_of=no_topics,
        create_topics=create_none,
        claims=lambda: claims,
        has_elsewhere=has_elsewhere,
    )


def test_a_name_is_free_again_where_others_could_not_be_asked() -> None:
    is_silent = True

    async def elsewhere(*_asked: object) -> bool:
        if is_silent:
            raise ApiError(Code.UNAVAILABLE, "gateway-2 did not answer")
        return False

    async def run() -> str:
        nonlocal is_silent
        found = instances(Claims(), elsewhere)
        with pytest.raises(ApiError, match="did not answer"):
            await found.create("g", NAMED, WRITER)
        is_silent = False
        made = await found.create("g", NAMED, WRITER)
        await found.close()
        return made.name

    assert asyncio.run(run()) == "mine"


def test_a_claim_is_let_go_of_where_another_worker_has_the_consumer() -> None:
    claims = Claims()

    async def elsewhere(*_asked: object) -> bool:
        return True

    async def run() -> None:
        found = instances(claims, elsewhere)
        with pytest.raises(ApiError) as refused:
            await found.create("g", NAMED, WRITER)
        assert refused.value.code is Code.CONSUMER_EXISTS
        await found.close()

    asyncio.run(run())

    assert claims.owners == {}
