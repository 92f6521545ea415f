"""`/events` as a web server drives it, without one."""

import asyncio

import pytest
from django.db import OperationalError

from console.events.endpoint import Endpoint
from console.events.hub import MAX_TOPICS_PER_STREAM, Hub, Owner
from gateway.access.grants import Rights
from tests.fakes.asgi_browser import Browser, FakeAsker, streaming

NEVER = 60.0


class AwayAsker(FakeAsker):
    async def owner_of(self, cookies: dict[str, str]) -> Owner | None:
        raise OperationalError("no such file")


def refused(browser: Browser, asker: FakeAsker | None = None, hub: Hub | None = None) -> str:
    async def ask() -> None:
        endpoint = Endpoint(hub or Hub(), asker or FakeAsker())
        await endpoint(browser.scope, browser.receive, browser.send)

    asyncio.run(ask())
    assert browser.is_complete
    return f"{browser.status} {browser.text.strip()}"


def test_a_tab_is_told_what_is_published() -> None:
    async def told() -> None:
        hub, browser = Hub(), Browser("topic=cluster:x&topic=cluster:y")
        async with streaming(Endpoint(hub, FakeAsker(), beat_s=NEVER), browser):
            await browser.hear("retry: ")
            hub.publish("cluster:x", '{"version": 8}')
            await browser.hear('event: cluster\ndata: {"version": 8}\n\n')

        headers = dict(browser.told[0]["headers"])
        assert (browser.status, headers[b"content-type"]) == (200, b"text/event-stream")
        assert headers[b"x-accel-buffering"] == b"no"

    asyncio.run(told())


def test_a_silent_stream_beats() -> None:
    async def told() -> None:
        browser = Browser()
        async with streaming(Endpoint(Hub(), FakeAsker(), beat_s=0.001), browser):
            await browser.hear("event: beat\ndata: 1\n\nevent: beat\ndata: 1\n\n")

    asyncio.run(told())


def test_a_tab_that_never_reads_is_cut_and_holds_one_value() -> None:
    async def told() -> None:
        hub, asker, browser = Hub(), FakeAsker(), Browser()
        async with streaming(Endpoint(hub, asker, beat_s=NEVER, cut_s=0.05), browser) as task:
            await browser.hear("retry: ")
            browser.reads.clear()
            (stream,) = hub._streams  # noqa: SLF001 - what it holds is the point
            for version in range(1_000):
                hub.publish("cluster:x", str(version))
                await asyncio.sleep(0)
                assert stream.pending <= 1

            await task

        assert hub.open_streams == 0
        assert asker.ended == 1

    asyncio.run(told())


def test_a_tab_that_leaves_is_noticed_at_once() -> None:
    async def told() -> None:
        hub, browser = Hub(), Browser()
        async with streaming(Endpoint(hub, FakeAsker(), beat_s=NEVER), browser) as task:
            await browser.hear("retry: ")
            browser.leave()
            await task

        assert hub.open_streams == 0

    asyncio.run(told())


@pytest.mark.parametrize("reason", ["signed out", "restarting"])
def test_an_end_is_told_with_its_reason_and_completes_the_answer(reason: str) -> None:
    async def told() -> None:
        hub, browser = Hub(), Browser()
        async with streaming(Endpoint(hub, FakeAsker(), beat_s=NEVER), browser) as task:
            await browser.hear("retry: ")
            if reason == "restarting":
                hub.drain()
            else:
                hub.end_session("a")
            await task

        assert browser.text.endswith(f"event: end\ndata: {reason}\n\n")
        assert browser.is_complete

    asyncio.run(told())


def test_whoever_is_not_signed_in_gets_no_stream() -> None:
    assert refused(Browser(), FakeAsker(None)) == "401 sign in first"


def test_whoever_may_not_view_the_cluster_gets_no_stream() -> None:
    nobody = Owner(user_id=1, session_key="a", rights=Rights())

    assert refused(Browser(), FakeAsker(nobody)).startswith("403 you may not view cluster:x")


def test_a_database_that_is_away_is_told_as_such() -> None:
    assert refused(Browser(), AwayAsker()) == "503 the database does not answer"


def test_the_limit_of_tabs_is_told_with_a_time_to_wait() -> None:
    browser = Browser()

    assert refused(browser, hub=Hub(max_per_user=0)).startswith("429 this user has 0 tabs open")
    assert (b"retry-after", b"30") in browser.told[0]["headers"]


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("", "0 topics asked for"),
        ("topic=cluster", "'cluster' is not a topic"),
        ("topic=cluster:x%0aevent:y", "is not a topic"),
        ("&".join(["topic=cluster:b"] * (MAX_TOPICS_PER_STREAM + 1)), "17 topics asked for"),
        ("topic=cluster:" + "b" * 20_000, "the query has"),
        ("topic=\xff", "is not a topic"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_before_the_database_is_asked(
    query: str, complaint: str
) -> None:
    asker = FakeAsker()
    answer = refused(Browser(query), asker)

    assert answer.startswith("400 ")
    assert complaint in answer
    assert asker.asked == []


def test_another_host_another_site_and_another_method_are_refused() -> None:
    posted = Browser()
    posted.scope["method"] = "POST"

    assert refused(Browser(host="evil.example")).startswith("400 this console does not answer")
    assert refused(Browser(sec_fetch_site="same-site")).startswith("403 this address is for")
    assert refused(Browser(sec_fetch_site="same-origin"), FakeAsker(None)).startswith("401")
    assert refused(posted).startswith("405 POST is not answered here")
