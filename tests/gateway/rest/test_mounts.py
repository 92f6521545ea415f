"""Which prefix a call is below."""

import pytest

from gateway.rest.calls import Call
from gateway.rest.mounts import Mount, Mounts
from gateway.rest.router import Route, Router
from gateway.rest.traffic import Counter
from gateway.rest.worker import NoCallers
from tests.fakes.asgi import scope_of


async def serve(call: Call) -> None:
    await call.answer(200)


def mount(prefix: str, path: str) -> Mount:
    route = Route(method="GET", path=path, handler=serve)
    return Mount(
        prefix=prefix,
        router=Router([route], callers=NoCallers(), traffic=Counter(), cluster_id=lambda: "c"),
    )


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
    all_of_them = Mounts(
        [mount("", "/consumers/{g}/{i}/{x}"), mount("/v3", "/clusters/{c}/topics")]
    )

    found = all_of_them.find(scope_of("GET", target, {}))

    assert (None if found is None else found.route.path) == path


def test_what_is_no_call_of_http_is_nobodys() -> None:
    assert Mounts([mount("", "/a")]).find({"type": "lifespan"}) is None
