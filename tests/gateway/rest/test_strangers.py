"""Unknown credentials: remembered for moments, and few of one address at a time."""

import asyncio
import threading
from typing import Any

import pytest

from gateway.access import token_text
from gateway.access.callers import Caller
from gateway.rest import callers as module
from gateway.rest import strangers
from gateway.rest.callers import Callers
from gateway.rest.codes import ApiError, Code
from gateway.rest.credentials import not_authenticated
from gateway.rest.identity import Identity
from gateway.rest.limits import Limits, Rates
from gateway.rest.strangers import REFUSED_SECONDS, Strangers
from tests.fakes.asgi import scope_of
from tests.fakes.rest_door import WRITER


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_was_refused_is_refused_again_for_a_moment() -> None:
    clock = Clock()
    found = Strangers(monotonic=clock)
    found.refuse("one", ApiError(Code.NOT_AUTHENTICATED, "this token is unknown"))

    with pytest.raises(ApiError, match="this token is unknown"):
        found.check("one")
    found.check("another")
    clock.now += REFUSED_SECONDS
    found.check("one")


def test_an_address_has_few_questions_and_those_that_find_somebody_are_free() -> None:
    clock = Clock()
    found = Strangers(per_second=2, monotonic=clock)
    for _ in range(5):
        found.enter("192.0.2.1")
        found.found("192.0.2.1")
    for address in ("2001:db8::1", "2001:db8::2"):
        found.enter(address)

    with pytest.raises(ApiError, match="more than 2 unknown tokens") as refused:
        found.enter("2001:db8::3")
    found.enter("2001:db8:1::3")
    clock.now += 1

    assert (refused.value.code, refused.value.retry_after_s) == (Code.TOO_MANY, 1)
    found.enter("2001:db8::3")


def test_the_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "MAX_ROWS", 2)
    found = Strangers()
    for number in range(3):
        found.refuse(number, ApiError(Code.NOT_AUTHENTICATED, "nobody's"))

    found.check(0)
    for number in (1, 2):
        with pytest.raises(ApiError):
            found.check(number)


class Counting(Identity):
    """Knows tokens that a test names, and counts questions, which it can hold up."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.known: set[object] = set()
        self.go_on = threading.Event()
        self.go_on.set()

    def key_of(self, asked: Any) -> object:
        return asked.headers["authorization"]

    def was_known(self, key: object) -> bool:
        return key in self.known

    def identify(self, asked: Any) -> Caller:
        self.asked += 1
        assert self.go_on.wait(30)
        if asked.headers["authorization"] in self.known:
            return WRITER
        raise not_authenticated("this token is unknown")


def bearer(number: int) -> str:
    return f"Bearer {token_text.new(bytes([number]) * token_text.RANDOM_BYTES)}"


MINE = bearer(255)


def shown(text: str) -> Any:
    return scope_of("GET", "/topics/x", {"Authorization": text})


def test_a_wrong_token_is_asked_for_once_in_a_moment() -> None:
    identity = Counting()

    async def run() -> list[Code]:
        found = Callers(identity, Limits(Rates()))
        codes = []
        for text in (bearer(1), bearer(1), bearer(2)):
            with pytest.raises(ApiError) as refused:
                await found.of(shown(text))
            codes.append(refused.value.code)
        await found.close()
        return codes

    assert asyncio.run(run()) == [Code.NOT_AUTHENTICATED] * 3
    assert identity.asked == 2


def test_made_up_tokens_leave_places_for_who_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 8)
    identity = Counting()
    identity.known.add(MINE)
    identity.go_on.clear()

    async def run() -> tuple[Caller, list[object]]:
        found = Callers(identity, Limits(Rates()))
        guesses = [asyncio.ensure_future(found.of(shown(bearer(n)))) for n in range(50)]
        mine = asyncio.ensure_future(found.of(shown(MINE)))
        while not all(guess.done() for guess in guesses[20:]):  # noqa: ASYNC110
            await asyncio.sleep(0)
        identity.go_on.set()
        told = await asyncio.gather(*guesses, return_exceptions=True)
        known = await mine
        await found.close()
        return known, list(told)

    known, told = asyncio.run(run())

    codes = [each.code for each in told if isinstance(each, ApiError)]
    assert known is WRITER
    # Three threads, and half of those who may wait.
    assert codes.count(Code.NOT_AUTHENTICATED) == 3 + 4
    assert codes.count(Code.UNAVAILABLE) == 50 - 7
