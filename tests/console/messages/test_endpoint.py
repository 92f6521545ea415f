"""The addresses below `/messages/` as a web server drives them, without one."""

import asyncio
import json
from typing import Any

import pytest

from console.events.hub import Hub, Owner
from console.messages.endpoint import MAX_PER_USER, STREAM, Endpoint
from console.messages.jobs import Means
from console.messages.places import NoSuchTopic, Places
from console.messages.question import BadQuestion, Question
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from gateway.kafka.errors import failure
from tests.builders.messages import CLUSTER, FakeSource, places, record
from tests.fakes.asgi_browser import ALICE, Browser, FakeAsker, streaming

QUERY = f"cluster={CLUSTER}&topic=orders"
VIEWER = Owner(user_id=2, session_key="v", rights=Rights([Grant(role=Role.VIEWER)]))


def endpoint(
    source: FakeSource | None = None,
    *,
    hub: Hub | None = None,
    owner: Owner | None = ALICE,
    asker: FakeAsker | None = None,
) -> Endpoint:
    held = source or FakeSource({0: [record(n) for n in range(5)]})
    means = Means(
        places_of=lambda _: places(*held.partitions), source_of=lambda _admission, _places: held
    )
    return Endpoint(hub or Hub(), asker or FakeAsker(owner), means)


def asked(browser: Browser, served: Endpoint | None = None) -> Browser:
    async def ask() -> None:
        await (served or endpoint())(browser.scope, browser.receive, browser.send)

    asyncio.run(ask())
    return browser


def stream(query: str = QUERY, **headers: str) -> Browser:
    return Browser(query, path=STREAM, **headers)


def lines(browser: Browser) -> list[dict[str, Any]]:
    return [json.loads(line) for line in browser.text.splitlines()]


def test_a_page_of_records_is_streamed_as_lines_of_json() -> None:
    browser = asked(stream())

    assert browser.status == 200
    assert (b"content-type", b"application/x-ndjson") in browser.told[0]["headers"]
    types = [line["type"] for line in lines(browser)]
    assert types == ["start", *["record"] * 5, "progress", "done"]
    assert browser.is_complete


def test_a_record_says_what_its_parts_are() -> None:
    source = FakeSource({0: [record(7, key=b"", value=None, headers=(("h", b"\xff"),))]})

    [line] = [x for x in lines(asked(stream(), endpoint(source))) if x["type"] == "record"]

    assert line["key"]["kind"] == "empty"
    assert line["value"]["kind"] == "null"
    assert line["headers"] == [
        {
            "name": "h",
            "value": {
                "kind": "hex",
                "text": "ff",
                "bytes": 1,
                "is_cut": False,
                "schema_id": None,
                "note": "no text: it is not UTF-8, or has control characters",
            },
        }
    ]


@pytest.mark.parametrize(
    ("query", "message", "next_step"),
    [
        ("topic=orders", "'cluster' has 0 characters", "name a cluster"),
        (f"{QUERY}&mode=sideways", "'mode' is 'sideways'", "newest, oldest"),
        (f"{QUERY}&mode=offset", "'from' is ''", "a whole number"),
        (f"{QUERY}&mode=offset&from=-1", "'from' is '-1'", "a whole number"),
        (f"{QUERY}&mode=time&from=noon", "'noon' is not a time", "milliseconds"),
        (f"{QUERY}&limit=1001", "'limit' is '1001'", "1 to 1,000"),
        (f"{QUERY}&limit=1&limit=2", "'limit' is given 2 times", "once"),
        (f"{QUERY}&partitions=1,x", "'partitions' has 'x'", "commas"),
        (f"{QUERY}&cursor=1", "'cursor' has '1'", "first page"),
        (f"{QUERY}&value=yaml", "'value' is 'yaml'", "auto, json"),
        ("x=1&" * 40, "more than 32 fields", "open the page"),
        ("x" * 70_000, "70000 bytes", "fewer partitions"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused_with_a_next_step(
    query: str, message: str, next_step: str
) -> None:
    browser = asked(stream(query))

    assert browser.status == 400
    told = json.loads(browser.text)
    assert message in told["message"]
    assert next_step in told["next_step"]


def test_who_is_not_signed_in_gets_nothing() -> None:
    assert asked(stream(), endpoint(owner=None)).status == 401


def test_a_viewer_reads_no_records() -> None:
    browser = asked(stream(), endpoint(owner=VIEWER))

    assert browser.status == 403
    assert "You may not read payloads on topic orders" in json.loads(browser.text)["message"]


def test_a_right_on_another_topic_is_no_right() -> None:
    grant = Grant(operation=Operation.READ_PAYLOADS, kind=Kind.TOPIC, pattern="pay*")
    owner = Owner(user_id=3, session_key="c", rights=Rights([grant]))

    assert asked(stream(), endpoint(owner=owner)).status == 403
    allowed = asked(stream(f"cluster={CLUSTER}&topic=payments"), endpoint(owner=owner))
    assert allowed.status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_reads_nothing(site: str) -> None:
    assert asked(stream(sec_fetch_site=site)).status == 403


def test_another_name_of_the_host_is_refused() -> None:
    assert asked(stream(host="evil.example")).status == 400


def test_only_reading_is_answered() -> None:
    browser = stream()
    browser.scope["method"] = "POST"

    assert asked(browser).status == 405


def test_a_topic_that_is_not_there_is_told() -> None:
    def missing(_question: Question) -> Places:
        raise NoSuchTopic("there is no topic 'orders' in this cluster")

    served = Endpoint(Hub(), FakeAsker(), Means(places_of=missing))

    browser = asked(stream(), served)

    assert browser.status == 404
    assert "no topic 'orders'" in json.loads(browser.text)["message"]


def test_a_partition_that_is_not_there_is_told() -> None:
    def missing(_question: Question) -> Places:
        raise BadQuestion("orders has no partition 9", "name partitions of 0 to 2")

    served = Endpoint(Hub(), FakeAsker(), Means(places_of=missing))

    assert asked(stream(), served).status == 400


def test_brokers_that_are_away_are_an_error_line_and_a_verdict() -> None:
    class Away(FakeSource):
        def bounds(self, partitions: Any) -> Any:
            raise failure("BROKER_NOT_AVAILABLE", "127.0.0.1:9092")

    told = lines(asked(stream(), endpoint(Away({0: []}))))

    assert [line["type"] for line in told] == ["error", "done"]
    assert "BROKER_NOT_AVAILABLE" in told[0]["message"]
    assert told[1]["verdict"] == "failed"


def test_a_mistake_of_ours_ends_the_stream_with_a_verdict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(FakeSource):
        def bounds(self, partitions: Any) -> Any:
            raise ZeroDivisionError

    told = lines(asked(stream(), endpoint(Broken({0: []}))))

    assert told[-1]["verdict"] == "failed"
    assert "messages.job_failed" in caplog.text


def test_a_browser_that_leaves_frees_its_place() -> None:
    async def left() -> None:
        hub, asker = Hub(), FakeAsker()
        big = FakeSource({0: [record(n, value=b"x" * 16_000) for n in range(500)]})
        served, browser = endpoint(big, hub=hub, asker=asker), stream(f"{QUERY}&limit=500")
        browser.reads.clear()
        async with streaming(served, browser) as task:
            await asker.wait_for(1)
            browser.leave()
            browser.reads.set()
            await task
        assert hub.open_streams == 0
        assert served._open.total() == 0  # noqa: SLF001 - the place that others wait for

    asyncio.run(left())


def test_a_session_that_ends_ends_its_streams_with_a_verdict() -> None:
    async def ended() -> None:
        hub, asker = Hub(), FakeAsker()
        big = FakeSource({0: [record(n, value=b"x" * 16_000) for n in range(500)]})
        browser = stream(f"{QUERY}&limit=500")
        browser.reads.clear()
        async with streaming(endpoint(big, hub=hub, asker=asker), browser) as task:
            await asker.wait_for(1)
            hub.end_session(ALICE.session_key)
            await asyncio.sleep(0)
            browser.reads.set()
            await task
        told = lines(browser)
        assert told[-1]["verdict"] == "stopped"
        assert "signed out" in told[-1]["sentence"]

    asyncio.run(ended())


def test_one_person_has_a_bounded_number_of_streams() -> None:
    async def crowd() -> None:
        big = FakeSource({0: [record(n, value=b"x" * 16_000) for n in range(500)]})
        asker = FakeAsker()
        served = endpoint(big, asker=asker)
        browsers = [stream(f"{QUERY}&limit=500") for _ in range(MAX_PER_USER)]
        tasks = []
        for browser in browsers:
            browser.reads.clear()
            tasks.append(asyncio.create_task(served(browser.scope, browser.receive, browser.send)))
        await asker.wait_for(MAX_PER_USER)
        late = stream()
        await served(late.scope, late.receive, late.send)
        assert late.status == 429
        assert "6 streams" in json.loads(late.text)["message"]
        for browser in browsers:
            browser.leave()
            browser.reads.set()
        await asyncio.gather(*tasks)

    asyncio.run(crowd())


def test_a_browser_that_never_reads_is_cut_and_its_thread_is_free() -> None:
    async def never() -> None:
        hub = Hub()
        big = FakeSource({0: [record(n, value=b"x" * 16_000) for n in range(500)]})
        means = Means(places_of=lambda _: places(0), source_of=lambda _admission, _places: big)
        served = Endpoint(hub, FakeAsker(), means, cut_s=0.01)
        browser = stream(f"{QUERY}&limit=500")
        heads = 1

        async def send(message: Any) -> None:
            nonlocal heads
            heads -= 1
            if heads < 0:
                await asyncio.Event().wait()

        await served(browser.scope, browser.receive, send)

        assert hub.open_streams == 0
        assert served._open.total() == 0  # noqa: SLF001 - the place that others wait for

    asyncio.run(never())
