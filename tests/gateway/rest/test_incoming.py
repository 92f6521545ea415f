"""How many bytes of bodies a process holds, and how slowly a body may come."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.rest import incoming
from gateway.rest.calls import Message, declared_by
from gateway.rest.codes import ApiError, Code
from gateway.rest.incoming import Arriving, Budget, unread
from tests.fakes.rest_door import VIEWER, WRITER

HOME = "192.0.2.1"


def refused(budget: Budget, sender: object, size: int) -> Code:
    with pytest.raises(ApiError) as caught:
        budget.change(sender, size)  # type: ignore[arg-type]
    assert caught.value.retry_after_s is not None
    return caught.value.code


def test_a_caller_an_address_and_the_process_have_limits() -> None:
    budget = Budget(10, each=6, strangers=4)

    budget.change(HOME, 4)
    budget.change(WRITER, 4)

    assert refused(budget, HOME, 1) is Code.TOO_MANY
    assert refused(budget, WRITER, 3) is Code.TOO_MANY
    assert refused(budget, VIEWER, 3) is Code.UNAVAILABLE
    budget.change(HOME, -4)
    budget.change(VIEWER, 6)


def test_unknown_callers_of_many_addresses_leave_half_to_known_ones() -> None:
    budget = Budget(16, each=8, strangers=4)

    budget.change("192.0.2.1", 4)
    budget.change("192.0.2.2", 4)

    assert refused(budget, "192.0.2.3", 1) is Code.UNAVAILABLE
    budget.change(WRITER, 8)
    budget.change("192.0.2.2", -4)
    budget.change("192.0.2.3", 4)


@pytest.mark.parametrize(
    ("headers", "length"),
    [
        ({}, 0),
        ({"content-length": "17"}, 17),
        ({"content-length": "9" * 40}, int("9" * 20)),
        ({"content-length": "-1"}, None),
        ({"content-length": "²"}, None),
        ({"transfer-encoding": "chunked"}, None),
    ],
)
def test_a_head_declares_how_long_its_body_is(headers: dict[str, str], length: int | None) -> None:
    assert declared_by(headers) == length


Coming = asyncio.Queue[Message]


def arriving(
    story: Callable[[Arriving, Coming], Awaitable[None]], budget: Budget, *, limit: int = 1_000
) -> None:
    async def run() -> None:
        coming = Coming()
        async with asyncio.timeout(20):
            await story(Arriving(coming.get, budget, sender=HOME, limit=limit), coming)

    asyncio.run(run())


def piece(size: int, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": b"x" * size, "more_body": more}


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        ([600, 400, 1], Code.TOO_LARGE),
        ([300, 300], Code.TOO_MANY),
    ],
)
def test_a_body_beyond_a_limit_looks_like_a_disconnect(pieces: list[int], code: Code) -> None:
    budget = Budget(strangers=500 if code is Code.TOO_MANY else 2_000)

    async def story(body: Arriving, coming: Coming) -> None:
        for size in pieces:
            coming.put_nowait(piece(size))
        told = [(await body.next())["type"] for _ in pieces]
        assert told == ["http.request"] * (len(pieces) - 1) + ["http.disconnect"]
        assert body.refused is not None
        assert body.refused.code is code
        body.release()

    arriving(story, budget)
    budget.change(HOME, 500)


def test_a_body_that_is_slower_than_the_least_pace_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(incoming, "START_S", 0.01)

    async def story(body: Arriving, coming: Coming) -> None:
        coming.put_nowait(piece(10))
        assert (await body.next())["type"] == "http.request"
        assert (await body.next())["type"] == "http.disconnect"
        assert body.refused is not None
        assert body.refused.code is Code.TIMED_OUT

    arriving(story, Budget())


def test_a_view_waits_for_the_disconnect_after_a_whole_body_as_long_as_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(incoming, "START_S", 0.01)

    async def story(body: Arriving, coming: Coming) -> None:
        coming.put_nowait(piece(1, more=False))
        await body.next()
        asyncio.get_running_loop().call_later(0.05, coming.put_nowait, {"type": "http.disconnect"})
        assert (await body.next())["type"] == "http.disconnect"
        assert body.refused is None

    arriving(story, Budget())


def test_a_body_that_is_not_read_is_discarded() -> None:
    async def story(_: Arriving, coming: Coming) -> None:
        async with unread(coming.get) as receive:
            assert await receive() == {"type": "http.request", "body": b"", "more_body": False}
            for message in (piece(9), piece(9, more=False), {"type": "http.disconnect"}):
                coming.put_nowait(message)
            assert (await receive())["type"] == "http.disconnect"
            assert coming.empty()

    arriving(story, Budget())
