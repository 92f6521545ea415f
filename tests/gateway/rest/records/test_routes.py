"""Records over HTTP, out of a real broker: in one piece, as lines and as events."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Operation, Role
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.readers import engine
from gateway.kafka.readers.engine import Readers
from gateway.kafka.values import NewRecord, NewTopic
from gateway.rest.calls import Scope
from gateway.rest.codes import ApiError, Code
from gateway.rest.records import routes as records
from gateway.rest.records.routes import Reads
from gateway.rest.route import Route
from gateway.rest.router import Router
from tests.fakes.asgi import scope_of
from tests.fakes.broker_thread import BesideBroker, broker_beside

pytestmark = pytest.mark.slow

RECORDS = 20
NOW_MS = time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BesideBroker]:
    with broker_beside(
        tmp_path_factory.mktemp("broker"), topics={"orders": 2, "odd": 1, "brief": 1, "grown": 1}
    ) as broker:
        for partition in range(2):
            write(broker, "orders", [b'{"n":%d}' % n for n in range(RECORDS)], partition=partition)
        write(broker, "odd", [b"\xff\xfe", None, b"plain", b'{"a":NaN}'])
        yield broker


def write(
    broker: BesideBroker, topic: str, values: Sequence[bytes | None], *, partition: int = 0
) -> None:
    producer = TopicWriter(Connection(bootstrap=broker.bootstrap), topic)
    for number, value in enumerate(values):
        producer.send(
            NewRecord(
                value=value,
                key=b"k%d" % number,
                headers=(("h", b"\x00"),),
                partition=partition,
                timestamp_ms=NOW_MS + number,
            )
        )
    producer.flush()


class Callers:
    """Knows one caller, until it is revoked."""

    def __init__(self, role: Role = Role.OPERATOR) -> None:
        self.revoked = asyncio.Event()
        self.rights = Rights([Grant(role=role)])
        self.watched = asyncio.Event()
        self._holds: Callable[[Caller], bool] = bool

    def look(self) -> bool:
        """Tell whether the stream that was opened last may go on, as it is asked at times."""
        return self._holds(self._caller())

    def _caller(self) -> Caller:
        return Caller(kind=CallerKind.TOKEN, name="t", rights=self.rights, number=1)

    async def of(self, scope: Scope) -> Caller:
        return self._caller()

    async def watch(self, caller: Caller, holds: Callable[[Caller], bool]) -> ApiError:
        self._holds = holds
        self.watched.set()
        await self.revoked.wait()
        assert holds(caller)
        return ApiError(Code.NOT_AUTHENTICATED, "the token was revoked")


class Uncounted:
    def begin(self, call: object) -> None:
        pass

    def count(self, call: object) -> None:
        pass


class Client:
    """One call, whose answer comes in pieces; leaves when it is told to."""

    def __init__(self, site: "Site", target: str, headers: Mapping[str, str]) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_ended = False
        self._text = ""
        self._changed = asyncio.Event()
        self._left = asyncio.Event()
        self._is_asked = False
        scope = scope_of("GET", target, headers)
        found = site.router.find(scope)
        assert found is not None
        route, parameters = found
        self.task = asyncio.create_task(
            site.router.serve(route, parameters, scope, self._receive, self._send)
        )

    async def _receive(self) -> Mapping[str, Any]:
        if not self._is_asked:
            self._is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self._text += message["body"].decode()
            self.is_ended = not message["more_body"]
        self._changed.set()

    async def until(self, done: Callable[[str], bool]) -> str:
        """Return what has come once it is enough."""
        while not done(self._text):
            self._changed.clear()
            await self._changed.wait()
        return self._text

    async def all(self) -> str:
        await self.task
        return self._text

    async def leave(self) -> str:
        self._left.set()
        return await self.all()


class Site:
    """The application beside a broker."""

    def __init__(self, broker: BesideBroker, callers: Callers) -> None:
        self.broker = broker
        self.callers = callers
        self.readers = Readers(Connection(bootstrap=broker.bootstrap))
        self.reads = Reads(self.readers, callers)
        self.router = Router(
            [
                Route(method="GET", path="/topics/{topic}/records", handler=self.reads.records),
                Route(method="GET", path="/sse/v1", handler=self.reads.events),
            ],
            callers=callers,
            traffic=Uncounted(),
            cluster_id=lambda: "c",
        )

    def ask(self, target: str, **headers: str) -> Client:
        return Client(self, target, {name.replace("_", "-"): headers[name] for name in headers})

    async def one(self, target: str) -> Any:
        client = self.ask(target)
        return json.loads(await client.all())


def run(
    broker: BesideBroker, work: Callable[[Site], Awaitable[None]], *, role: Role = Role.OPERATOR
) -> None:
    async def serve() -> None:
        site = Site(broker, Callers(role))
        try:
            async with asyncio.timeout(60):
                await work(site)
        finally:
            await site.readers.close()

    asyncio.run(serve())


def events(text: str) -> list[tuple[str, str, Any]]:
    """Return name, id and data of each event."""
    found = []
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((fields["event"], fields["id"], json.loads(fields["data"])))
    return found


def offsets(told: Sequence[Mapping[str, Any]]) -> list[int]:
    return [one["offset"] for one in told]


LINES = "application/x-ndjson"
EVENTS = "text/event-stream"


def test_a_read_in_one_piece_tells_where_the_next_one_begins(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        first = await site.one("/topics/orders/records?partition=0&max=15&format=json")
        assert offsets(first["records"]) == list(range(15))
        assert first["next"] == "0:15"
        assert first["partitions"] == [{"partition": 0, "next_offset": 15, "end_offset": RECORDS}]
        assert first["records"][3] == {
            "topic": "orders",
            "partition": 0,
            "offset": 3,
            "timestamp": NOW_MS + 3,
            "timestamp_type": "create",
            "key": "k3",
            "value": {"n": 3},
            "headers": [{"name": "h", "value": "AA=="}],
        } | {"key": "azM=", "error": "key is not JSON, it is given as base64"}

        rest = await site.one(f"/topics/orders/records?from={first['next']}&format=string")
        both = {(one["partition"], one["offset"]) for one in rest["records"]}
        assert both == {(0, n) for n in range(15, RECORDS)} | {(1, n) for n in range(RECORDS)}

        at_end = await site.one(f"/topics/orders/records?from={rest['next']}&wait=0.05")
        assert (at_end["records"], at_end["next"]) == ([], rest["next"])

    run(broker, work)


def test_a_read_begins_at_a_time_or_at_the_end(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(NOW_MS // 1000 + 3_600))
        for start in ["end", f"{when}Z"]:
            told = await site.one(f"/topics/orders/records?from={start}&wait=0")
            assert told["next"] == f"0:{RECORDS},1:{RECORDS}"

    run(broker, work)


@pytest.mark.parametrize(
    ("form", "values"),
    [
        ("binary", ["//4=", None, "cGxhaW4=", "eyJhIjpOYU59"]),
        ("string", ["//4=", None, "plain", '{"a":NaN}']),
        ("json", ["//4=", None, "cGxhaW4=", "eyJhIjpOYU59"]),
    ],
)
def test_what_a_format_cannot_show_comes_as_base64(
    broker: BesideBroker, form: str, values: list[object]
) -> None:
    async def work(site: Site) -> None:
        told = await site.one(f"/topics/odd/records?format={form}&max=4")
        assert [one["value"] for one in told["records"]] == values
        problems = [one.get("error", "").split(", it")[0] for one in told["records"]]
        if form == "binary":
            assert problems == [""] * 4
        elif form == "string":
            assert problems == ["value is not UTF-8", "", "", ""]
        else:
            assert "value is not JSON, it is given as base64" in told["records"][2]["error"]

    run(broker, work)


def test_a_gap_is_told_beside_the_records(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        told = await site.one("/topics/orders/records?partition=1&from=999&wait=0.1")
        [gap] = told["gaps"]
        assert (gap["from"], gap["to"], gap["reason"]) == (999, RECORDS, "cut")

    run(broker, work)


@pytest.mark.parametrize(
    ("target", "status", "words"),
    [
        ("/topics/nowhere/records", 404, "nowhere"),
        ("/topics/orders/records?partition=9", 404, "partition 9"),
        ("/topics/orders/records?partition=x", 400, "give a number"),
        ("/topics/orders/records?from=yesterday", 400, "beginning, end, an offset"),
        ("/topics/orders/records?from=2026-99-99T00:00:00", 400, "not a time"),
        ("/topics/orders/records?from=" + "9" * 19, 400, "larger than any"),
        ("/topics/orders/records?max=0", 400, "from 1 to 10000"),
        ("/topics/orders/records?max_bytes=" + "9" * 400, 400, "max_bytes"),
        ("/topics/orders/records?wait=31", 400, "30 at most"),
        ("/topics/orders/records?wait=nan", 400, "wait"),
        ("/topics/orders/records?format=avro", 400, "binary, string, json"),
        ("/topics/orders/records?offset=1", 400, "unknown field"),
        ("/sse/v1", 400, "topics is missing"),
        ("/sse/v1?topics=orders,odd&from=0:1", 400, "for several topics"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    broker: BesideBroker, target: str, status: int, words: str
) -> None:
    async def work(site: Site) -> None:
        client = site.ask(target)
        told = json.loads(await client.all())
        assert client.status == status
        assert words in told["message"]

    run(broker, work)


def test_who_may_not_see_records_gets_none(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        for accept in ["*/*", LINES, EVENTS]:
            client = site.ask("/topics/orders/records", accept=accept)
            told = json.loads(await client.all())
            assert (client.status, told["error_code"]) == (403, 40301)

    run(broker, work, role=Role.VIEWER)


def test_lines_come_as_records_are_written(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        client = site.ask("/topics/orders/records?from=18&partition=1", accept=LINES)
        text = await client.until(lambda text: text.count("\n") >= 3)
        heartbeat, *found = [json.loads(line) for line in text.splitlines()]
        assert client.headers["content-type"] == LINES
        assert heartbeat == {"event": "heartbeat", "next": "1:18"}
        assert offsets(found) == [18, 19]
        await client.leave()
        assert not client.is_ended

    run(broker, work)


def test_events_go_on_exactly_where_the_last_one_was(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        client = site.ask("/topics/orders/records?from=beginning&max=7", accept=EVENTS)
        first = events(await client.all())
        assert first[0][0] == "heartbeat"
        assert first[-1][0] == "close"
        last_id = first[-1][1]

        again = site.ask("/topics/orders/records", accept=EVENTS, last_event_id=last_id)
        total = 2 * RECORDS - 7
        text = await again.until(
            lambda text: sum(len(data.get("records", [])) for _, _, data in events(text)) >= total
        )
        await again.leave()
        told = [
            (one["partition"], one["offset"])
            for _, _, data in first + events(text)
            for one in data.get("records", [])
        ]
        assert sorted(told) == [(p, n) for p in range(2) for n in range(RECORDS)]

    run(broker, work)


def test_events_of_several_topics_go_on_where_each_was(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        client = site.ask("/sse/v1?topics=orders,odd&from=beginning&max=30")
        last_id = events(await client.all())[-1][1]
        again = site.ask("/sse/v1?topics=odd,orders&max=14", last_event_id=last_id)
        *_, (name, last_id, data) = events(await again.all())
        assert (name, data["reason"]) == ("close", "complete")
        assert last_id == f"odd:0:4,orders:0:{RECORDS},orders:1:{RECORDS}"

        wrong = site.ask("/sse/v1?topics=odd", last_event_id=last_id)
        assert "names 'orders', and odd are read" in await wrong.all()

    run(broker, work)


def test_a_stream_of_a_token_that_is_revoked_ends_with_a_last_word(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        client = site.ask("/topics/orders/records", accept=EVENTS)
        await client.until(bool)
        site.callers.revoked.set()
        name, _, data = events(await client.all())[-1]
        assert (name, data["reason"], data["error_code"]) == ("close", "refused", 40101)
        assert client.is_ended

    run(broker, work)


def test_a_worker_that_drains_ends_its_streams_with_a_last_word(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        client = site.ask("/topics/orders/records", accept=LINES)
        await client.until(bool)
        site.reads.drain()
        last = json.loads((await client.all()).splitlines()[-1])
        assert (last["event"], last["reason"]) == ("close", "draining")
        assert last["next"] == f"0:{RECORDS},1:{RECORDS}"

    run(broker, work)


def test_a_topic_that_is_deleted_ends_the_stream(broker: BesideBroker) -> None:
    write(broker, "brief", [b"x"])

    async def work(site: Site) -> None:
        client = site.ask("/topics/brief/records?from=beginning", accept=LINES)
        await client.until(lambda text: '"offset":0' in text)
        admin = Admin(Connection(bootstrap=broker.bootstrap))
        await asyncio.to_thread(admin.delete, ["brief"])
        *_, end, close = [json.loads(line) for line in (await client.all()).splitlines()]
        assert (end["event"], end["reason"]) == ("end", "UNKNOWN_TOPIC_OR_PARTITION")
        assert close["reason"] == "ended"

    run(broker, work)


def test_a_partition_that_is_added_is_told_and_read(
    broker: BesideBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "WATCH_S", 0.05)

    async def work(site: Site) -> None:
        lines = site.ask("/topics/grown/records?from=beginning", accept=LINES)
        named = site.ask("/topics/grown/records?partition=0", accept=LINES)
        tells = site.ask("/sse/v1?topics=grown&from=beginning&max=2")
        for client in (lines, named, tells):
            await client.until(bool)
        admin = Admin(Connection(bootstrap=broker.bootstrap))
        await asyncio.to_thread(admin.add_partitions, "grown", 2)
        await asyncio.to_thread(write, broker, "grown", [b"1", b"2"], partition=1)
        text = await lines.until(lambda text: text.count('offset":1') > 0)
        _, assigned, *found = [json.loads(line) for line in text.splitlines()]
        place = {"topic": "grown", "partition": 1, "offset": 0}
        assert assigned == {"event": "assigned", "partitions": [place]}
        assert [(one["partition"], one["offset"]) for one in found] == [(1, 0), (1, 1)]

        _, told, *_, (_, last_id, _) = events(await tells.all())
        assert told == ("assigned", "grown:0:0,grown:1:0", {"partitions": [place]})
        assert last_id == "grown:0:0,grown:1:2"
        assert "assigned" not in await named.leave()
        await lines.leave()

    run(broker, work)


def test_topics_of_a_pattern_are_read_as_events_and_gone_on_with(
    broker: BesideBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WATCH_S", "LIST_S", "FRESH_S"):
        monkeypatch.setattr(engine, name, 0.05)

    def make(name: str) -> None:
        Admin(Connection(bootstrap=broker.bootstrap)).create([NewTopic(name=name, partitions=1)])
        write(broker, name, [b"1"])

    async def work(site: Site) -> None:
        first = site.ask("/sse/v1?pattern=eu-.*&max=1")
        await first.until(bool)
        await asyncio.to_thread(make, "us-a")
        await asyncio.to_thread(make, "eu-a")
        told = events(await first.all())
        assert [name for name, _, _ in told] == ["heartbeat", "assigned", "batch", "close"]
        assert [last_id for _, last_id, _ in told] == ["-", "eu-a:0:0", "eu-a:0:1", "eu-a:0:1"]

        await asyncio.to_thread(make, "eu-b")
        for last_id, wanted in (("-", ["eu-a:0:1,eu-b:0:1"]), ("eu-a:0:1", ["eu-a:0:1,eu-b:0:1"])):
            most = 2 if last_id == "-" else 1
            again = site.ask(f"/sse/v1?pattern=eu-.*&max={most}", last_event_id=last_id)
            assert [events(await again.all())[-1][1]] == wanted

        wrong = site.ask("/sse/v1?pattern=us-.*", last_event_id="eu-a:0:1")
        assert "names 'eu-a', and 'us-.*' are read" in await wrong.all()

    run(broker, work)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("pattern=(", "is not an expression of RE2"),
        ("pattern=", "0 characters"),
        ("pattern=a&topics=orders", "leave out topics"),
        ("pattern=a&partition=0", "leave out partition"),
        ("pattern=a&from=0:1", "for several topics"),
    ],
)
def test_a_pattern_that_cannot_be_meant_is_refused(
    broker: BesideBroker, query: str, words: str
) -> None:
    async def work(site: Site) -> None:
        client = site.ask(f"/sse/v1?{query}")
        assert words in await client.all()
        assert client.status == 400

    run(broker, work)


def test_a_stream_by_a_pattern_ends_with_the_right_to_what_it_reads(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        site.callers.rights = rights_to("orders", "odd")
        client = site.ask("/sse/v1?pattern=o.*")
        [(_, last_id, _)] = events(await client.until(bool))
        assert last_id == f"odd:0:4,orders:0:{RECORDS},orders:1:{RECORDS}"
        await site.callers.watched.wait()
        assert site.callers.look()
        site.callers.rights = rights_to("orders")
        assert not site.callers.look()
        await client.leave()

        site.callers.rights = rights_to()
        refused = site.ask("/sse/v1?pattern=o.*")
        assert "may not read payloads" in await refused.all()

    run(broker, work)


def rights_to(*patterns: str) -> Rights:
    return Rights(Grant(operation=Operation.READ_PAYLOADS, pattern=each) for each in patterns)


def test_a_caller_has_so_many_streams_and_no_more(
    broker: BesideBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_STREAMS_EACH", 2)

    async def work(site: Site) -> None:
        held = [site.ask("/topics/orders/records", accept=LINES) for _ in range(2)]
        for client in held:
            await client.until(bool)
        refused = site.ask("/topics/orders/records", accept=LINES)
        assert "token:t has 2 streams" in await refused.all()
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        await held[0].leave()
        again = site.ask("/topics/orders/records", accept=LINES)
        await again.until(bool)
        await again.leave()
        await held[1].leave()

    run(broker, work)
