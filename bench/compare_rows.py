"""The loads by which two versions of the project are compared: each row costs CPU per unit.

A row asks a running home over its public interfaces only, so that one harness drives any version.
Its cost is the CPU of the processes that serve it, which a busy machine changes least.
"""

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from confluent_kafka import Producer
from websockets.asyncio.client import ClientConnection, connect

from bench.blaster import Job
from bench.broker_targets import Target
from bench.children import done_by
from bench.connect import FILE, TOPIC, make_sink, size_of
from bench.gateway import CARRIED, RECORD, V2_RECORD, V2_TYPE, answer
from bench.homes import BenchHome
from bench.processes import Process, family

# The time limit for a connector to start, or for a change to appear on a page.
PATIENCE_SECONDS: Final = 60.0
WRITTEN: Final = "bench-written"
FULL: Final = "bench-full"
# Records for every row to read; a row that needs more reads these several times.
RECORDS: Final = 100_000
VALUE: Final = b'{"n":12345678}'
# Each row costs about a second of CPU, which the kernel counts in steps of 10 ms.
BLAST_SECONDS: Final = 4.0
REQUESTS: Final = 400
SINGLES: Final = 3_000
CONNECTIONS: Final = 4
FRAME: Final = 100
FRAMES: Final = 20_000
PAGES: Final = 60
CALLS: Final = 300
TOPICS: Final = 60
SUNK: Final = 100_000
PASSWORD: Final = "compared by pairs 7"  # noqa: S105 - of a home that is gone soon
BROKER, GATEWAY, WEB = "broker-1", "gateway-1", "web"
# The worker of connectors, and the processes that run its tasks.
CONNECT: Final = "connect-worker-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`run` does the work and returns how many units it was; `processes` pay for it."""

    name: str
    unit: str
    processes: tuple[str, ...]
    run: Callable[["Site"], int]
    # Runs before the measurement.
    prepare: Callable[["Site"], None] | None = None
    bound: float = 1.03


class Site:
    """A running home with what all rows need: topics, records, a token and a signed-in user."""

    def __init__(self, home: BenchHome) -> None:
        self.home = home
        status = home.status()
        self.bootstrap = str(status["bootstrap"])
        self.gateway = urlsplit(str(status["gateway"]))
        self.web = urlsplit(str(status["console"]))
        self.broker = home.first_broker()
        self.token = home.says("tokens", "create", "compare", "--admin").strip()
        self.cluster = (home.folder / "cluster-id").read_text(encoding="ascii").strip()
        self.cookies = sign_in(self)
        fill(self.broker)

    def cpu_seconds(self, names: tuple[str, ...]) -> float:
        """Return the CPU so far of processes and of all that descend from them."""
        running = self.home.pids()
        pids = {pid for name in names for pid in family(running[name])}
        return sum(Process(pid).cpu_seconds_with_ended() for pid in pids)

    def bearer(self) -> str:
        return f"Authorization: Bearer {self.token}"


def cost(row: Row, site: Site) -> float:
    """Return the CPU seconds of one unit."""
    if row.prepare is not None:
        row.prepare(site)
    before = site.cpu_seconds(row.processes)
    units = row.run(site)
    assert units > 0, f"{row.name} has done nothing"
    return (site.cpu_seconds(row.processes) - before) / units


def fill(broker: Target) -> None:
    """Make the topics of the rows, others beside them, and records to read."""
    broker.make_topic(WRITTEN, 4)
    broker.make_topic(FULL, 1)
    broker.make_topic(TOPIC, 1)
    for number in range(TOPICS):
        broker.make_topic(f"beside-{number}", 2)
    write(broker.bootstrap, FULL, RECORDS)


def write(bootstrap: str, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(records):
        producer.produce(topic, VALUE)
        if number % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0, f"records of {topic} were not delivered"


# --- the broker --------------------------------------------------------------------------------


def broker_produce(site: Site) -> int:
    return blast(site, kind="produce", partitions=4, is_idempotent=True)


def broker_fetch(site: Site) -> int:
    return blast(site, kind="fetch", topic=FULL, bytes_each=16 * 1024)


def blast(site: Site, *, kind: str, topic: str = WRITTEN, **details: Any) -> int:  # noqa: ANN401 - of a job
    job = Job(
        host=site.broker.host,
        port=site.broker.port,
        kind=kind,
        topic=topic,
        connections=8,
        seconds=BLAST_SECONDS,
        **details,
    )
    return int(done_by("bench.blaster", asdict(job), seconds=BLAST_SECONDS)["requests"])


# --- REST --------------------------------------------------------------------------------------


def rest_produce(site: Site) -> int:
    path = f"/v3/clusters/{site.cluster}/topics/{WRITTEN}/records"
    request = encode_post(site, path, "application/json", RECORD * CARRIED)
    return repeat(site, request, REQUESTS) * CARRIED


def rest_single(site: Site) -> int:
    body = b'{"records":[%s]}' % V2_RECORD
    return repeat(site, encode_post(site, f"/topics/{WRITTEN}", V2_TYPE, body), SINGLES)


def rest_read(site: Site) -> int:
    path = f"/v1/topics/{FULL}/records?max=1000&from=1000"
    request = f"GET {path} HTTP/1.1\r\nHost: bench\r\n{site.bearer()}\r\n\r\n".encode()
    return repeat(site, request, REQUESTS // 4)


def encode_post(site: Site, path: str, content_type: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {content_type}\r\n"
        f"{site.bearer()}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def repeat(site: Site, request: bytes, requests: int) -> int:
    """Send a request again and again over some connections; every answer has to be a success."""

    async def connection() -> None:
        reader, writer = await asyncio.open_connection(site.gateway.hostname, site.gateway.port)
        for _ in range(requests // CONNECTIONS):
            writer.write(request)
            await answer(reader)
        writer.close()

    async def all_of_them() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))

    asyncio.run(all_of_them())
    return requests // CONNECTIONS * CONNECTIONS


# --- sockets -----------------------------------------------------------------------------------


def sockets_read(site: Site) -> int:
    async def read(socket: ClientConnection) -> int:
        credit = {"records": 10 * FRAME}
        start = {"from": "earliest", "topics": [FULL], "credit": credit}
        await say(socket, type="subscribe", sid="a", **start)
        count = 0
        while count < RECORDS:
            text = await socket.recv(decode=False)
            found = text.count(b'"offset":') if text.startswith(b'{"type":"batch"') else 0
            count += found
            if found:
                await say(socket, type="credit", sid="a", records=found)
        return count

    return over_socket(site, read)


def sockets_produce(site: Site) -> int:
    async def produce(socket: ClientConnection) -> int:
        async def send() -> None:
            for number in range(FRAMES):
                text = '{"type":"produce","id":"%d","topic":"%s","value":"12345678901234"}'
                await socket.send(text % (number, WRITTEN))

        sending = asyncio.create_task(send())
        for _ in range(FRAMES):
            text = await socket.recv(decode=False)
            assert text.startswith(b'{"type":"receipt"'), text[:300]
        await sending
        return FRAMES

    return over_socket(site, produce)


def over_socket(site: Site, work: Callable[[ClientConnection], Awaitable[int]]) -> int:
    async def run() -> int:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            connect(
                f"ws://{site.gateway.netloc}/ws/v1",
                additional_headers={"Authorization": f"Bearer {site.token}"},
                compression=None,
                max_size=None,
                ping_interval=None,
                proxy=None,
            ) as socket,
        ):
            ready = await socket.recv(decode=False)
            assert ready.startswith(b'{"type":"ready"'), ready[:300]
            return await work(socket)

    return asyncio.run(run())


async def say(socket: ClientConnection, **frame: object) -> None:
    await socket.send(json.dumps(frame))


# --- the console and connectors ----------------------------------------------------------------


def console_topics(site: Site) -> int:
    return fetch_pages(site, ["/topics", "/topics?sort=-size", "/topics?q=beside-1"], PAGES)


def console_topic(site: Site) -> int:
    return fetch_pages(site, [f"/topics/{FULL}", f"/topics/{FULL}?tab=configs"], PAGES)


def console_overview(site: Site) -> int:
    return fetch_pages(site, ["/", "/brokers", "/groups"], PAGES)


def connect_rest(site: Site) -> int:
    headers = {"Authorization": f"Bearer {site.token}"}
    paths = ["/connect/connectors", "/connect/", "/connect/connectors?expand=status"]
    return fetch_pages(site, paths, CALLS, headers)


def fetch_pages(
    site: Site, paths: list[str], requests: int, headers: Mapping[str, str] | None = None
) -> int:
    link = http.client.HTTPConnection(site.web.netloc, timeout=PATIENCE_SECONDS)
    shown = headers or {"Cookie": cookie_header(site.cookies)}
    for number in range(requests):
        path = paths[number % len(paths)]
        link.request("GET", path, headers=dict(shown))
        found = link.getresponse()
        body = found.read()
        assert found.status == HTTPStatus.OK, f"{path}: {found.status} {body[:300]!r}"
    link.close()
    return requests


def start_sink(site: Site) -> None:
    """Make a sink into a file, and wait until its processes have written a record."""
    make_sink(site.home)
    write(site.bootstrap, TOPIC, 1)
    wait_for(lambda: size_of(file_of(site)) > 0, "the first record in the sink's file")


def connect_sink(site: Site) -> int:
    before = size_of(file_of(site))
    write(site.bootstrap, TOPIC, SUNK)
    wanted = before + SUNK * (len(VALUE) + len("\n"))
    wait_for(lambda: size_of(file_of(site)) >= wanted, "all records in the sink's file")
    return SUNK


def file_of(site: Site) -> Path:
    return site.home.folder / "files" / FILE


def wait_for(fact: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not fact():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_SECONDS:g} s for {what}: see the home's logs")
        time.sleep(0.05)


# --- signing in --------------------------------------------------------------------------------


def sign_in(site: Site) -> dict[str, str]:
    """Sign in as the first user, who has to change the password that the home has made."""
    file = site.home.folder / "secrets" / "admin-password"
    given = file.read_text(encoding="ascii").strip()
    cookies = submit(site, "/login", {"username": "admin", "password": given}, {})
    new = {"former": given, "new": PASSWORD, "again": PASSWORD}
    return submit(site, "/password", new, cookies)


def submit(
    site: Site, path: str, fields: Mapping[str, str], cookies: Mapping[str, str]
) -> dict[str, str]:
    """Send a form, and return the cookies that its answer leaves."""
    link = http.client.HTTPConnection(site.web.netloc, timeout=PATIENCE_SECONDS)
    link.request("GET", path, headers={"Cookie": cookie_header(cookies)})
    kept = {**cookies, **set_by(link)[1]}
    token = next(value for name, value in kept.items() if "csrftoken" in name)
    headers = {
        "Cookie": cookie_header(kept),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    link.request("POST", path, urlencode({**fields, "csrfmiddlewaretoken": token}), headers)
    status, made = set_by(link)
    link.close()
    assert status == HTTPStatus.FOUND, f"{path} did not take its form: {status}"
    return {**kept, **made}


def set_by(link: http.client.HTTPConnection) -> tuple[int, dict[str, str]]:
    found = link.getresponse()
    found.read()
    pairs = [text.partition(";")[0] for text in found.headers.get_all("Set-Cookie", [])]
    return found.status, dict(pair.split("=", 1) for pair in pairs)


def cookie_header(cookies: Mapping[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


# A socket repeats per frame the work that a request does once.
SOCKETS_BOUND: Final = 1.05
ROWS: Final[Mapping[str, Row]] = {
    row.name: row
    for row in (
        Row(name="broker.produce", unit="request", processes=(BROKER,), run=broker_produce),
        Row(name="rest.produce", unit="record", processes=(GATEWAY,), run=rest_produce),
        Row(
            name="sockets.read",
            unit="record",
            processes=(GATEWAY,),
            run=sockets_read,
            bound=SOCKETS_BOUND,
        ),
        Row(
            name="sockets.produce",
            unit="record",
            processes=(GATEWAY,),
            run=sockets_produce,
            bound=SOCKETS_BOUND,
        ),
        Row(name="console.topics", unit="page", processes=(WEB,), run=console_topics),
        Row(
            name="connect.sink",
            unit="record",
            processes=(CONNECT,),
            run=connect_sink,
            prepare=start_sink,
        ),
        Row(name="broker.fetch", unit="request", processes=(BROKER,), run=broker_fetch),
        Row(name="rest.single", unit="request", processes=(GATEWAY,), run=rest_single),
        Row(name="rest.read", unit="request", processes=(GATEWAY,), run=rest_read),
        Row(name="console.topic", unit="page", processes=(WEB,), run=console_topic),
        Row(name="console.overview", unit="page", processes=(WEB,), run=console_overview),
        Row(name="connect.rest", unit="call", processes=(WEB,), run=connect_rest),
    )
}
DEFAULT: Final = tuple(ROWS)[:6]
