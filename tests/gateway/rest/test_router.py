"""Which call goes where, and what becomes of one that fails."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from gateway.kafka.errors import failure
from gateway.rest.calls import Call, Scope
from gateway.rest.codes import ApiError, Code
from gateway.rest.gate import Right
from gateway.rest.route import Route
from gateway.rest.router import Router
from tests.fakes.asgi import Answer, asked

VIEWER = Caller(
    kind=CallerKind.TOKEN, name="reader", rights=Rights([Grant(role=Role.VIEWER)]), number=1
)
Handler = Callable[[Call], Awaitable[None]]


class Known:
    """Admits every call as one caller, or none."""

    def __init__(self, error: ApiError | None = None) -> None:
        self._error = error

    async def of(self, scope: Scope) -> Caller:
        if self._error is not None:
            raise self._error
        return VIEWER


class Counted:
    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int]] = []

    def begin(self, call: Call) -> None:
        """Only what is over is told."""

    def count(self, call: Call) -> None:
        self.calls.append((call.status, call.bytes_in, call.errors))


async def tell(call: Call) -> None:
    await call.answer(200, dict(call.parameters))


def router(
    *routes: tuple[str, str, Handler],
    callers: Known | None = None,
    traffic: Counted | None = None,
) -> Router:
    return Router(
        [Route(method=method, path=path, handler=handler) for method, path, handler in routes],
        callers=callers or Known(),
        traffic=traffic or Counted(),
        cluster_id=lambda: "c",
    )


def serve(
    found: Router,
    method: str,
    path: str,
    *,
    body: Sequence[bytes] = (),
    headers: Mapping[str, str] | None = None,
    under: str = "",
) -> Answer | None:
    async def application(scope: Scope, receive: Any, send: Any) -> None:
        match found.find(scope, under=under):
            case route, parameters:
                await found.serve(route, parameters, scope, receive, send)

    return asyncio.run(asked(application, method, path, body=body, headers=headers or {}))


TOPIC = "/v3/clusters/{cluster}/topics/{topic}/records"


@pytest.mark.parametrize(
    ("path", "topic"),
    [
        ("/v3/clusters/c/topics/orders/records", "orders"),
        ("/v3/clusters/c/topics/orders/records/", "orders"),
        ("/v3/clusters/c/topics/a%2Fb/records", "a/b"),
        ("/v3/clusters/c/topics/%E6%9D%B1/records?x=1", "東"),
    ],
)
def test_a_name_is_unquoted_after_the_address_was_split(path: str, topic: str) -> None:
    answer = serve(router(("POST", TOPIC, tell)), "POST", path)

    assert answer is not None
    assert answer.json() == {"cluster": "c", "topic": topic}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v3/clusters/c/topics/orders/records"),
        ("POST", "/v3/clusters/c/topics/orders"),
        ("POST", "/v3/clusters/c/topics//records"),
        ("POST", "/v3/clusters/c/topics/%FF/records"),
        ("POST", "/v3/clusters/c/topics/" + "x" * 5_000 + "/records"),
    ],
)
def test_what_no_route_serves_goes_on_to_others(method: str, path: str) -> None:
    assert serve(router(("POST", TOPIC, tell)), method, path) is None


@pytest.mark.parametrize(
    ("path", "status"),
    [("/clusters/c/topics/orders", 403), ("/clusters/other/topics/orders", 404)],
)
def test_call_without_a_right_of_its_row_or_of_another_cluster_is_refused(
    path: str, status: int
) -> None:
    rights = (Right(operation=Operation.PRODUCE, kind=Kind.TOPIC, name="topic"),)
    route = Route(
        method="POST", path="/clusters/{cluster}/topics/{topic}", handler=tell, rights=rights
    )
    guarded = Router([route], callers=Known(), traffic=Counted(), cluster_id=lambda: "c")

    answer = serve(guarded, "POST", path)

    assert answer is not None
    assert answer.status == status


def test_an_application_can_be_mounted_below_a_prefix() -> None:
    mounted = router(("GET", "/topics/{topic}", tell))

    found = serve(mounted, "GET", "/rest/topics/orders", under="/rest")

    assert found is not None
    assert found.json() == {"topic": "orders"}
    assert serve(mounted, "GET", "/restless/topics/orders", under="/rest") is None


def test_somebody_unknown_is_told_how_to_be_known() -> None:
    error = ApiError(Code.NOT_AUTHENTICATED, "show a token")

    answer = serve(router(("GET", "/topics", tell), callers=Known(error)), "GET", "/topics")

    assert answer is not None
    assert (answer.status, answer.json()["error_code"]) == (401, 40101)
    assert "Basic" in answer.headers["www-authenticate"]


def failing(error: Exception) -> Handler:
    async def fail(call: Call) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status", "code", "words"),
    [
        (ApiError(Code.NO_PARTITION, "no 7"), 404, 40402, "no 7"),
        (failure("UNKNOWN_TOPIC_OR_PARTITION", "topic t"), 404, 40401, "topic t"),
        (failure("REQUEST_TIMED_OUT", "topic t"), 500, 50003, "more time"),
        (failure("BROKER_NOT_AVAILABLE", "here:1"), 503, 50302, "here:1"),
        (failure("KAFKA_STORAGE_ERROR", "topic t"), 500, 50002, "disk"),
        (ZeroDivisionError("secret"), 500, 500, "its log says how"),
    ],
)
def test_what_goes_wrong_is_answered_with_its_code(
    error: Exception, status: int, code: int, words: str
) -> None:
    traffic = Counted()

    answer = serve(router(("GET", "/x", failing(error)), traffic=traffic), "GET", "/x")

    assert answer is not None
    told = answer.json()
    assert (answer.status, told["error_code"]) == (status, code)
    assert words in told["message"]
    assert "secret" not in told["message"]
    assert traffic.calls == [(status, 0, 1)]


def test_a_limit_says_when_to_come_again() -> None:
    error = ApiError(Code.TOO_MANY, "slower", retry_after_s=3)

    answer = serve(router(("GET", "/x", failing(error))), "GET", "/x")

    assert answer is not None
    assert (answer.status, answer.headers["retry-after"]) == (429, "3")


async def read(call: Call) -> None:
    await call.answer(200, {"bytes": len(await call.body(10))})


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ([b"12345", b"67890"], {}, 200),
        ([b"12345", b"678901"], {}, 413),
        ([], {"content-length": "11"}, 413),
        ([], {"content-length": "9" * 5_000}, 413),
    ],
)
def test_a_body_has_a_limit(body: Sequence[bytes], headers: Mapping[str, str], status: int) -> None:
    traffic = Counted()

    answer = serve(
        router(("POST", "/x", read), traffic=traffic), "POST", "/x", body=body, headers=headers
    )

    assert answer is not None
    assert answer.status == status
    assert traffic.calls[0][1] == sum(map(len, body))


async def see_topic(call: Call) -> None:
    call.require(Operation.PRODUCE, Kind.TOPIC, "orders")


def test_a_right_that_is_missing_is_named() -> None:
    answer = serve(router(("POST", "/x", see_topic)), "POST", "/x")

    assert answer is not None
    assert (answer.status, answer.json()["error_code"]) == (403, 40301)
    assert "produce on topic orders" in answer.json()["message"]


async def start_and_fail(call: Call) -> None:
    await call.start(200, "application/json")
    await call.write(json.dumps({"ok": 1}).encode())
    raise ApiError(Code.BAD_REQUEST, "too late for a status")


def test_an_error_after_the_start_ends_the_answer() -> None:
    answer = serve(router(("GET", "/x", start_and_fail)), "GET", "/x")

    assert answer is not None
    assert (answer.status, answer.body, answer.is_ended) == (200, b'{"ok": 1}', True)


@pytest.mark.parametrize("query", ["a=" + "b" * 9_000, "&".join(["a=b"] * 60), "a=%C3%28&b"])
def test_a_hostile_query_is_refused_or_read(query: str) -> None:
    async def ask(call: Call) -> None:
        await call.answer(200, call.query())

    answer = serve(router(("GET", "/x", ask)), "GET", f"/x?{query}")

    assert answer is not None
    assert answer.status in {200, 400}
