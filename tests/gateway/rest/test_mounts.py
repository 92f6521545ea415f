"""Which prefix a call is below."""

import asyncio

import pytest

from gateway.access.callers import Caller
from gateway.rest.calls import Call, Scope
from gateway.rest.mounts import Mount, Mounts
from gateway.rest.route import Route
from gateway.rest.router import NOBODY, Router
from gateway.rest.traffic import Counter
from tests.fakes.asgi import Answer, asked, scope_of


class Anybody:
    async def of(self, scope: Scope) -> Caller:
        return NOBODY


def mount(prefix: str, path: str) -> Mount:
    async def tell(call: Call) -> None:
        await call.answer(200, path.encode())

    route = Route(method="GET", path=path, handler=tell)
    return Mount(
        prefix=prefix,
        router=Router([route], callers=Anybody(), traffic=Counter(), cluster_id=lambda: "c"),
    )


MOUNTS = Mounts(
    [mount("", "/consumers/{g}/{i}/{x}"), mount("/v3", "/clusters/{c}/topics")],
    passed=mount("/passed", "/consumers/{g}"),
)


def answered(target: str, *, is_own: bool = False) -> Answer | None:
    scope = scope_of("GET", target, {})
    application = MOUNTS.find_own(scope) if is_own else MOUNTS.find(scope)
    if application is None:
        return None
    return asyncio.run(asked(application, "GET", target, headers={}))


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/v3/clusters/a/topics", "/clusters/{c}/topics"),
        ("/consumers/a/b/c", "/consumers/{g}/{i}/{x}"),
        ("/v3x/clusters/a/topics", None),
        ("/other", None),
    ],
)
def test_a_call_goes_to_the_longest_prefix_that_it_is_below(target: str, path: str | None) -> None:
    answer = answered(target)

    assert (None if answer is None else answer.body.decode()) == path


def test_the_own_socket_serves_what_is_passed_on_and_nothing_else() -> None:
    passed = answered("/passed/consumers/a", is_own=True)
    other = answered("/v3/clusters/a/topics", is_own=True)

    assert passed is not None
    assert passed.status == 200
    assert other is not None
    assert other.json()["error_code"] == 404
