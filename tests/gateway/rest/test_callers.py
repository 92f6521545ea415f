"""Callers on the event loop: over a router, many at once, and while a stream is open."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from gateway.access import token_text
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from gateway.rest import callers as module
from gateway.rest.callers import Callers
from gateway.rest.calls import Call, Scope
from gateway.rest.codes import ApiError, Code
from gateway.rest.identity import Identity
from gateway.rest.limits import Limits, Rates
from gateway.rest.route import Route
from gateway.rest.router import Router
from gateway.rest.traffic import Counter
from gateway.shared import hints
from gateway.shared.store import Shared
from tests.builders import tokens
from tests.fakes.asgi import Answer, asked, scope_of


async def tell(call: Call) -> None:
    call.require(Operation.READ_PAYLOADS, Kind.TOPIC, call.parameters["topic"])
    await call.answer(200, {"caller": call.caller.key})


async def ask(found: Callers, target: str, **headers: str) -> Answer:
    route = Route(method="GET", path="/topics/{topic}", handler=tell)
    router = Router([route], callers=found, traffic=Counter(), cluster_id=lambda: "c")

    async def application(scope: Scope, receive: Any, send: Any) -> None:
        match router.find(scope):
            case served, parameters:
                await router.serve(served, parameters, scope, receive, send)

    answer = await asked(application, "GET", target, headers=headers)
    assert answer is not None
    return answer


def made(rates: Rates | None = None) -> Callers:
    return Callers(Identity(), Limits(rates or Rates()))


@pytest.mark.usefixtures("database")
def test_a_program_is_let_in_refused_and_slowed_by_what_it_shows() -> None:
    text = tokens.token()

    async def run() -> list[Answer]:
        found = made(Rates(requests=3))
        shown = f"Bearer {text}"
        try:
            return [
                await ask(found, "/topics/orders.eu", authorization=shown),
                await ask(found, "/topics/payments", authorization=shown),
                await ask(found, "/topics/orders.eu"),
                await ask(found, f"/topics/orders.eu?token={text}"),
                await ask(found, "/topics/orders.eu", authorization=shown),
                await ask(found, "/topics/orders.eu", authorization=shown),
            ]
        finally:
            await found.close()

    answers = asyncio.run(run())

    assert [answer.status for answer in answers] == [200, 403, 401, 400, 200, 429]
    assert answers[0].json() == {"caller": "token:app"}
    assert answers[1].json()["error_code"] == 40301
    assert answers[2].json()["error_code"] == 40101
    assert answers[2].headers["www-authenticate"] == 'Basic realm="Samsa", charset="UTF-8"'
    assert answers[5].headers["retry-after"] == "1"


def revoke() -> None:
    tokens.revoke()
    connections.close_all()


class Slow(Identity):
    """Counts what is asked of the database."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def identify(self, asked: Any) -> Caller:
        self.asked += 1
        return super().identify(asked)


@pytest.mark.usefixtures("database")
def test_many_calls_at_once_with_one_token_ask_once() -> None:
    text = tokens.token()
    identity = Slow()

    async def run() -> set[str]:
        found = Callers(identity, Limits(Rates()))
        scope = scope_of("GET", "/topics/x", {"Authorization": f"Bearer {text}"})
        known = await asyncio.gather(*(found.of(scope) for _ in range(500)))
        await found.close()
        return {caller.key for caller in known}

    assert asyncio.run(run()) == {"token:app"}
    assert identity.asked == 1


@pytest.mark.usefixtures("database")
def test_a_stream_ends_when_its_token_is_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KNOWN_SECONDS", 0.01)
    monkeypatch.setattr("gateway.rest.identity.KNOWN_SECONDS", 0.0)
    text = tokens.token()

    async def run() -> ApiError:
        found = made()
        scope = scope_of("GET", "/topics/x", {"Authorization": f"Bearer {text}"})
        caller = await found.of(scope)
        watching = asyncio.ensure_future(found.watch(caller))
        await asyncio.to_thread(revoke)
        async with asyncio.timeout(5):
            ended = await watching
        await found.close()
        return ended

    assert "was revoked" in asyncio.run(run()).message


@pytest.mark.usefixtures("database")
def test_hint_lets_streams_look_before_their_next_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    for where in ("gateway.rest.callers", "gateway.rest.identity"):
        monkeypatch.setattr(f"{where}.KNOWN_SECONDS", 3_600.0)
    text = tokens.token()

    async def run() -> ApiError:
        found, layer = made(), hints.layer_of(Shared("", cluster="c"))
        found.begin(layer)
        caller = await found.of(scope_of("GET", "/topics/x", {"Authorization": f"Bearer {text}"}))
        watching = asyncio.ensure_future(found.watch(caller))
        await asyncio.to_thread(revoke)
        async with asyncio.timeout(30):
            while not watching.done():
                await layer.group_send(hints.ACCESS, {"type": "access.changed"})
                await asyncio.wait([watching], timeout=0.01)
        await found.close()
        return watching.result()

    assert "was revoked" in asyncio.run(run()).message


class Told(Identity):
    """Returns what a test sets."""

    def __init__(self, answers: list[Callable[[], Caller]]) -> None:
        super().__init__()
        self.answers = answers

    def again(self, key: object) -> Caller:
        return self.answers.pop(0)()


def caller(*grants: Grant) -> Caller:
    return Caller(kind=CallerKind.TOKEN, name="app", rights=Rights(grants), number=1)


def away() -> Caller:
    raise ApiError(Code.UNAVAILABLE, "the database is away")


def test_a_stream_outlives_the_database_and_ends_when_its_rights_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "KNOWN_SECONDS", 0.0)
    reader = caller(Grant(role=Role.OPERATOR))
    identity = Told([away, lambda: reader, lambda: caller(Grant(role=Role.VIEWER))])

    def may_read(found: Caller) -> bool:
        return found.decide(Operation.READ_PAYLOADS, Kind.TOPIC, "c", "x").is_allowed

    async def run() -> ApiError:
        found = Callers(identity, Limits(Rates()))
        try:
            return await found.watch(reader, may_read)
        finally:
            await found.close()

    ended = asyncio.run(run())

    assert ended.code is Code.NOT_ALLOWED
    assert identity.answers == []


def test_a_stream_whose_caller_cannot_be_looked_at_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KNOWN_SECONDS", 0.0)

    def fail() -> Caller:
        raise RuntimeError

    async def run() -> ApiError:
        found = Callers(Told([fail]), Limits(Rates()))
        try:
            return await found.watch(caller(Grant(role=Role.OPERATOR)))
        finally:
            await found.close()

    assert asyncio.run(run()).code is Code.INTERNAL


def test_too_many_who_wait_are_told_to_come_again() -> None:
    async def run() -> None:
        lane = module.Lane(1, 1, "test")
        hold = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait() -> Caller:
            asyncio.run_coroutine_threadsafe(hold.wait(), loop).result()
            return caller()

        asking = [lane.ask(wait) for _ in range(2)]
        with pytest.raises(ApiError, match="try again in a second"):
            lane.ask(wait)
        hold.set()
        await asyncio.gather(*asking)
        await lane.ask(caller)
        await lane.close()

    asyncio.run(run())


def test_a_token_that_nobody_could_look_up_is_no_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    # No place is left for any caller, known or not.
    monkeypatch.setattr(module, "MAX_WAITING", -2 * module.TOKEN_THREADS)
    # More than an address may show in a second.
    calls = 200

    async def run() -> set[Code]:
        found = made()
        codes = set()
        for number in range(calls):
            text = token_text.new(number.to_bytes(token_text.RANDOM_BYTES, "big"))
            scope = scope_of("GET", "/topics/x", {"Authorization": f"Bearer {text}"})
            with pytest.raises(ApiError) as refused:
                await found.of(scope)
            codes.add(refused.value.code)
        await found.close()
        return codes

    assert asyncio.run(run()) == {Code.UNAVAILABLE}
