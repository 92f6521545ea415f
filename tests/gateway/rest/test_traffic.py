"""What is counted for whom."""

import asyncio

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.rest.calls import Call, Message
from gateway.rest.traffic import OTHERS, STEP_S, STEPS, Counter, PassedTraffic
from tests.fakes.asgi import scope_of


def test_counts_of_a_caller_add_up() -> None:
    traffic = Counter()

    traffic.add("token:a", requests=1, records=3, bytes_in=10)
    traffic.add("token:a", requests=1, errors=1, bytes_out=4)

    assert traffic.rows() == {
        "token:a": {
            "requests": 2,
            "records": 3,
            "errors": 1,
            "bytes_in": 10,
            "bytes_out": 4,
            "open": 0,
        }
    }


def test_a_stream_counts_as_open_until_it_ends() -> None:
    traffic = Counter()

    with traffic.opened("token:a"), traffic.opened("token:a"):
        during = traffic.rows()["token:a"]["open"]

    assert (during, traffic.rows()["token:a"]["open"]) == (2, 0)


def test_callers_beyond_the_limit_are_counted_together() -> None:
    traffic = Counter(max_callers=2)

    for name in "abcd":
        traffic.add(name, requests=1)
    traffic.add("a", requests=1)

    assert {key: row["requests"] for key, row in traffic.rows().items()} == {
        "a": 2,
        "b": 1,
        OTHERS: 2,
    }


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def call_of(name: str) -> Call:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        """Nobody looks."""

    caller = Caller(kind=CallerKind.TOKEN, name=name, rights=Rights())
    scope = scope_of("GET", "/x", {})
    return Call(scope, receive, send, caller=caller, cluster_id="c", parameters={})


def test_a_call_that_goes_on_is_counted_in_the_step_in_which_it_moves_something() -> None:
    clock = Clock()
    traffic = Counter(monotonic=clock)

    async def goes_on() -> None:
        call = call_of("a")
        traffic.begin(call)
        call.records = 5
        traffic.recent()
        clock.now += STEP_S
        call.records = 7
        traffic.count(call)

    asyncio.run(goes_on())

    first = int(1_000 // STEP_S)
    assert traffic.recent()["steps"] == {
        str(first): {"token:a": (0, 5, 0, 0, 0)},
        str(first + 1): {"token:a": (1, 2, 0, 0, 0)},
    }
    assert traffic.rows()["token:a"]["records"] == 7


def test_steps_of_long_ago_are_forgotten() -> None:
    clock = Clock()
    traffic = Counter(monotonic=clock)

    for _ in range(2 * STEPS):
        traffic.add("token:a", requests=1)
        clock.now += STEP_S

    kept = traffic.recent()["steps"]
    assert isinstance(kept, dict)
    assert len(kept) == STEPS - 1
    assert traffic.rows()["token:a"]["requests"] == 2 * STEPS


def test_what_was_passed_on_counts_its_records_only() -> None:
    traffic = Counter()
    call = call_of("a")
    call.records, call.bytes_out = 3, 100

    PassedTraffic(traffic).begin(call)
    PassedTraffic(traffic).count(call)

    row = traffic.rows()["token:a"]
    assert (row["requests"], row["records"], row["bytes_out"]) == (0, 3, 0)
