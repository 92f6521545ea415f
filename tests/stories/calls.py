"""Commands of stories about REST calls: the gate of the gateway, and records behind it.

The router, the limits, the rights and the handler are those of the gateway. Tokens are in a table
of the story in place of the database, and topics in one in place of brokers.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role
from gateway.kafka.delivery import Deliveries
from gateway.kafka.errors import failure
from gateway.kafka.values import Delivered, NewRecord
from gateway.rest.calls import Scope
from gateway.rest.codes import ApiError, Code
from gateway.rest.limits import Limits, Rates
from gateway.rest.produce.desk import Desk, Done
from gateway.rest.produce.routes import PRODUCE
from gateway.rest.produce.v2 import V2, produce_v2
from gateway.rest.route import Route
from gateway.rest.router import Router
from gateway.rest.strangers import Strangers
from gateway.rest.traffic import Counter
from tests.fakes.asgi import asked
from tests.fakes.clock import ManualClock
from tests.stories.script import Commands, Milliseconds, counted

CLUSTER: Final = "c"
JSON_RECORDS: Final = "application/vnd.kafka.json.v2+json"
# Low, so that a story reaches them.
RATES: Final = Rates(requests=3, records=100)
GUESSES: Final = 2


def commands(_folder: Path) -> Commands:
    calls = Calls()
    return {
        "topic": calls.topic,
        "token": calls.token,
        "produce": calls.produce,
        "records": calls.records,
        "wait": calls.wait,
    }


class Calls:
    """The gateway of one story."""

    def __init__(self) -> None:
        self._clock = ManualClock()
        self._callers = TokenCallers(self._clock)
        self._topics = Topics()

    def topic(self, name: str) -> Iterator[str]:
        self._topics.logs[name] = []
        yield f"topic {name} exists"

    def token(self, name: str, role: str) -> Iterator[str]:
        self._callers.known[name] = Caller(
            kind=CallerKind.TOKEN,
            name=name,
            rights=Rights([Grant(role=Role(role))]),
            number=len(self._callers.known) + 1,
        )
        yield f"token {name} is of role {role}"

    def produce(
        self, topic: str, *values: str, token: str = "", repeat: int = 1, times: int = 1
    ) -> Iterator[str]:
        """Send POST /topics/TOPIC with a record for each value, so many times over."""
        body = {"records": [{"value": value} for value in values * repeat]}
        for _ in range(times):
            said = asyncio.run(self._post(f"/topics/{topic}", body, token))
        yield from said

    def records(self, topic: str) -> Iterator[str]:
        log = self._topics.logs[topic]
        yield f"{topic} has {counted(len(log), 'record')}"

    def wait(self, time: Milliseconds) -> Iterator[str]:
        self._clock.advance(time)
        yield "time passes"

    async def _post(self, path: str, body: object, token: str) -> list[str]:
        desk = Desk(cast(Deliveries, self._topics), limits=self._callers.limits)
        route = Route(
            method="POST",
            path="/topics/{topic}",
            handler=partial(produce_v2, desk=desk),
            rights=PRODUCE,
            error_type=V2,
        )
        router = Router(
            [route], callers=self._callers, traffic=Counter(), cluster_id=lambda: CLUSTER
        )

        async def application(scope: Scope, receive: Any, send: Any) -> None:
            found = router.find(scope)
            assert found is not None, f"no route has the path {path}"
            await router.serve(*found, scope, receive, send)

        text = json.dumps(body).encode()
        headers = {"Content-Type": JSON_RECORDS, "Content-Length": str(len(text))}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        answer = await asked(application, "POST", path, body=[text], headers=headers)
        assert answer is not None
        return list(_words(answer.status, answer.headers, answer.json()))


class TokenCallers:
    """Finds callers as `gateway.rest.callers` does, without its threads and its database."""

    def __init__(self, clock: ManualClock) -> None:
        self.limits = Limits(RATES, monotonic=clock.monotonic)
        self.known: dict[str, Caller] = {}
        self._strangers = Strangers(per_second=GUESSES, monotonic=clock.monotonic)

    async def of(self, scope: Scope) -> Caller:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if not token:
            raise ApiError(Code.NOT_AUTHENTICATED, "credentials are required")
        caller = self.known.get(token)
        if caller is None:
            self._strangers.check(token)
            self._strangers.enter(scope["client"][0])
            error = ApiError(Code.NOT_AUTHENTICATED, "this token is not known")
            self._strangers.refuse(token, error)
            raise error
        self.limits.take_request(caller)
        return caller


class Topics:
    """Brokers whose topics are lists, and which acknowledge at once."""

    is_full = False

    def __init__(self) -> None:
        self.logs: dict[str, list[NewRecord]] = {}

    @property
    def topics(self) -> "Topics":
        return self

    async def require(self, topic: str, _partition: int | None = None) -> int:
        if topic not in self.logs:
            raise failure("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic}")
        return 1

    def is_known(self, topic: str, _partition: int | None = None) -> bool:
        return topic in self.logs

    async def room(self) -> None:
        """There is always room."""

    def send(self, topic: str, record: NewRecord, done: Done) -> None:
        self.logs[topic].append(record)
        done(Delivered(partition=0, offset=len(self.logs[topic]) - 1, timestamp_ms=0))


def _words(status: int, headers: Mapping[str, str], body: Any) -> Iterator[str]:
    if "offsets" in body:
        offsets = [f"offset {one['offset']}" for one in body["offsets"]]
        yield f"{status}: {', '.join(offsets[:3])}{' …' if len(offsets) > 3 else ''}"
        return
    wait = headers.get("retry-after")
    again = f" (Retry-After: {wait})" if wait else ""
    yield f"{status}: {body['error_code']} {body['message']}{again}"
