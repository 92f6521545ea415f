"""Streams of records out of a running broker, from the cookie to the last line."""

import asyncio
import json
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from pytest_django import Settings

from console.events.hub import Hub
from console.events.watch import Watch
from console.messages.endpoint import STREAM, Endpoint
from console.messages.jobs import Means
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic
from tests.console import cluster_rows
from tests.fakes.asgi_browser import Browser, streaming
from tests.suite.services import SharedHome, shared_home

pytestmark = pytest.mark.slow

PARTITIONS = 3
RECORDS = 900
BURST = 2_000
# Some seconds of searching.
LONG = 200_000
PAD = b"x" * 160


@pytest.fixture(scope="module")
def home() -> SharedHome:
    return shared_home()


@pytest.fixture
def topic(home: SharedHome, unique: Any) -> str:
    """A topic with a needle every hundred records, known to the test's own database."""
    name = str(unique("orders"))
    connection = Connection(bootstrap=home.bootstrap)
    # The records are of 1970, and retention takes those of a default topic after minutes.
    kept = {"retention.ms": "-1"}
    Admin(connection).create([NewTopic(name=name, partitions=PARTITIONS, configs=kept)])
    producer = TopicWriter(connection, name)
    for number in range(RECORDS):
        document = {"id": 2**53 + 1 + number, "note": "<b>needle</b>" if number % 100 == 7 else ""}
        producer.send(
            NewRecord(
                value=json.dumps(document).encode(),
                key=b"k%d" % number,
                partition=number % PARTITIONS,
                timestamp_ms=1_000 + number,
            )
        )
    producer.flush()
    return name


@pytest.fixture
def cookie(home: SharedHome, topic: str, alice: Client, settings: Settings) -> str:
    # As the agent of that home has written it.
    with closing(sqlite3.connect(home.home.folder / "cluster.db")) as database:
        [told] = database.execute("SELECT host, port, inspection_port FROM controlplane_broker")
    shown = cluster_rows.cluster()
    row = cluster_rows.broker(shown, 1)
    row.host, row.port, row.inspection_port = told
    row.save()
    cluster_rows.topic(shown, topic, partitions=PARTITIONS)
    name = settings.SESSION_COOKIE_NAME
    settings.SAMSA_SECRETS = home.home.secrets
    return f"{name}={alice.cookies[name].value}"


def lines(cookie: str, topic: str, **fields: Any) -> list[dict[str, Any]]:
    async def told() -> list[dict[str, Any]]:
        hub = Hub()
        served = Endpoint(hub, Watch(hub), Means())
        query = urlencode({"cluster": cluster_rows.CLUSTER_ID, "topic": topic, **fields})
        browser = Browser(query, path=STREAM, cookie=cookie)
        async with streaming(served, browser) as task:
            await task
        assert browser.status == 200, browser.text
        return [json.loads(line) for line in browser.text.splitlines()]

    return asyncio.run(told())


def values(told: list[dict[str, Any]]) -> list[str]:
    return [line["value"]["text"] for line in told if line["type"] == "record"]


def test_the_newest_records_are_shown_as_they_were_written(cookie: str, topic: str) -> None:
    told = lines(cookie, topic, limit=2)

    assert [json.loads(value)["id"] for value in values(told)] == [
        2**53 + RECORDS,
        2**53 + RECORDS - 1,
    ]
    assert f'"id": {2**53 + RECORDS}' in values(told)[0]


def test_every_seeded_needle_is_found_in_both_directions(cookie: str, topic: str) -> None:
    expected = {1_007 + 100 * number for number in range(RECORDS // 100)}

    for mode in ("oldest", "newest"):
        told = lines(cookie, topic, mode=mode, filter='value.note contains "needle"')

        assert [line for line in told if line["type"] == "error"] == []
        times = [int(line["timestamp_ms"]) for line in told if line["type"] == "record"]
        assert set(times) == expected
        assert told[-1]["sentence"] == f"complete: {len(expected)} hits in {RECORDS} records"


def test_a_number_of_64_bits_is_found_to_the_digit(cookie: str, topic: str) -> None:
    told = lines(cookie, topic, filter=f"value.id = {2**53 + 8}")

    assert [json.loads(value)["id"] for value in values(told)] == [2**53 + 8]


def test_a_tail_tells_a_burst_record_by_record(home: SharedHome, cookie: str, topic: str) -> None:
    async def followed() -> list[dict[str, Any]]:
        hub = Hub()
        served = Endpoint(hub, Watch(hub), Means())
        query = urlencode(
            {"cluster": cluster_rows.CLUSTER_ID, "topic": topic, "mode": "tail", "partitions": 1}
        )
        browser = Browser(query, path=STREAM, cookie=cookie)
        async with streaming(served, browser) as task:
            await browser.hear('"type":"start"')
            await asyncio.to_thread(burst, home, topic)
            await browser.hear('"text":"last"')
            browser.leave()
            await task
        return [json.loads(line) for line in browser.text.splitlines()]

    told = asyncio.run(followed())

    offsets = [int(line["offset"]) for line in told if line["type"] == "record"]
    first = RECORDS // PARTITIONS
    assert offsets == list(range(first, first + BURST + 1))
    assert [line for line in told if line["type"] in {"gap", "error"}] == []


def burst(home: SharedHome, topic: str) -> None:
    producer = TopicWriter(Connection(bootstrap=home.bootstrap), topic)
    for number in range(BURST):
        producer.send(NewRecord(value=b"%d" % number, partition=1))
    producer.send(NewRecord(value=b"last", partition=1))
    producer.flush()


@pytest.mark.alone
def test_hits_come_at_once_and_who_leaves_ends_the_search(
    home: SharedHome, cookie: str, topic: str, report: Any
) -> None:
    producer = TopicWriter(Connection(bootstrap=home.bootstrap), topic)
    for number in range(LONG):
        producer.send(NewRecord(value=b'{"id": %d, "pad": "%s"}' % (number, PAD), partition=0))
    producer.flush()
    broker = home.pid("broker-1")

    async def left() -> tuple[float, float]:
        hub = Hub()
        served = Endpoint(hub, Watch(hub), Means())
        fields = {"mode": "oldest", "partitions": 0, "filter": "value.id = 5 or value.id = -1"}
        query = urlencode({"cluster": cluster_rows.CLUSTER_ID, "topic": topic, **fields})
        browser = Browser(query, path=STREAM, cookie=cookie)
        began = time.monotonic()
        async with streaming(served, browser) as task:
            await browser.hear('"type":"record"')
            first_hit = time.monotonic() - began
            assert searches_of(broker), "the search is still under way"
            ended = time.monotonic()
            browser.leave()
            await task
            await asyncio.to_thread(wait_for_end, broker)
            return first_hit, time.monotonic() - ended

    first_hit, end = asyncio.run(left())

    report(f"search: first hit after {first_hit:.3f} s, ended {end:.3f} s after the browser")
    # 0.3 s and 0.03 s where nothing else runs; CI runs on machines where others do.
    assert first_hit <= 2
    assert end <= 0.5


def wait_for_end(broker: int) -> None:
    while searches_of(broker):
        pass


def searches_of(broker: int) -> list[int]:
    """Return the processes that search for a broker."""
    children = Path(f"/proc/{broker}/task/{broker}/children").read_text(encoding="ascii").split()
    found = []
    for child in children:
        with suppress(OSError):
            if b"brokers.search.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found
