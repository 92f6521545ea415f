"""The rows of a topic's messages in a browser, with a stream that a test writes frame by frame."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.test import Client
from playwright.sync_api import Browser, Page, expect

from tests.browser import accessibility
from tests.browser.site import Site
from tests.browser.visitor import HEIGHT, PATIENCE_MS, WIDTH, Visitor, visiting
from tests.console import cluster_rows
from tests.extras import requires

pytestmark = [requires("chromium", "axe"), pytest.mark.slow]

HOSTILE: Final = "<img src=x onerror=\"tellViolation('ran')\">\u202e\0"
# Answers for the stream of records, kept so that a test writes into them.
STREAMS: Final = """
window.streams = [];
const ask = window.fetch;
window.fetch = (address, options) => {
  if (!String(address).startsWith("/messages/stream")) return ask(address, options);
  const made = { address: String(address), taken: 0, abortedAt: 0 };
  const body = new ReadableStream(
    { start: (to) => { made.to = to; }, pull: () => { made.taken += 1; } },
    { highWaterMark: 0 },
  );
  options.signal.addEventListener("abort", () => {
    made.abortedAt = performance.now();
    made.to.error(new DOMException("aborted", "AbortError"));
  });
  window.streams.push(made);
  const refusal = new URLSearchParams(location.search).get("refusal");
  const [status, text] = JSON.parse(refusal) ?? [200, null];
  if (status === 0) return Promise.reject(new TypeError("no network"));
  return Promise.resolve(new Response(status === 200 ? body : text, { status }));
};
"""
WRITE: Final = """(frames) => {
  const lines = frames.map((frame) => JSON.stringify(frame) + "\\n").join("");
  window.streams.at(-1).to.enqueue(new TextEncoder().encode(lines));
}"""
START: Final = {
    "type": "start",
    "partitions": [{"partition": 0, "start": "0", "end": "99", "from": "0", "to": "99"}],
    "filter": "",
    "plan": "",
}


def part(text: str | None, kind: str = "text", **more: object) -> dict[str, object]:
    return {
        "kind": "null" if text is None else kind,
        "text": text or "",
        "bytes": len((text or "").encode()),
        "is_cut": False,
        "schema_id": None,
        "note": "",
        **more,
    }


def record(offset: int, value: object = None, **more: object) -> dict[str, object]:
    return {
        "type": "record",
        "partition": 0,
        "offset": str(offset),
        "timestamp_ms": "1700000000000",
        "timestamp_type": "create",
        "key": part("k"),
        "value": value or part(f"value {offset}"),
        "headers": [],
        "more_headers": 0,
        "size": 10,
        **more,
    }


def done(verdict: str = "complete", sentence: str = "complete: it is so", **more: object) -> Any:
    return {"type": "done", "verdict": verdict, "sentence": sentence, "next": None, **more}


def write(page: Page, *frames: object, ends: bool = False) -> None:
    page.evaluate(WRITE, list(frames))
    if ends:
        page.evaluate("window.streams.at(-1).to.close()")


@pytest.fixture(scope="module")
def shared_tab(browser: Browser, site: Site) -> Iterator[Visitor]:
    # A tab costs a second of CPU to open.
    with visiting(browser, site.base) as visitor:
        visitor.page.add_init_script(STREAMS)
        yield visitor


@pytest.fixture
def tab(shared_tab: Visitor, site: Site, alice: Client) -> Iterator[Visitor]:
    """The tab of the module as a new one: a user, no page, and nothing kept of earlier ones."""
    cluster = cluster_rows.cluster()
    cluster_rows.broker(cluster, 1)
    cluster_rows.topic(cluster, "orders", partitions=3)
    page = shared_tab.page
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    page.emulate_media(color_scheme="light")
    page.mouse.move(0, 0)
    shared_tab.complaints.clear()
    with site.seen_by(alice):
        yield shared_tab
        complaints = list(shared_tab.complaints)
        page.wait_for_load_state()
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.goto("about:blank")
        page.context.clear_cookies()
        page.context.clear_permissions()
    assert complaints == []


def open_messages(tab: Visitor, query: str = "") -> Page:
    tab.open(f"/topics/orders/messages{query}")
    tab.page.wait_for_function("window.streams?.length === 1")
    return tab.page


def refused(status: int, text: str) -> str:
    """Return the part of a query for which STREAMS refuses; no network is status 0."""
    return urlencode({"refusal": json.dumps([status, text])})


def rows(page: Page) -> int:
    return page.locator("#records tr.record").count()


def test_payloads_are_text_in_rows_and_in_details(tab: Visitor) -> None:
    page = open_messages(tab)
    hostile = {"name": HOSTILE, "value": part(HOSTILE)}
    json_part = part(json.dumps({HOSTILE: 2**63 + 1}), kind="json", note=HOSTILE)
    record_of_all = record(1, json_part, key=part(HOSTILE), headers=[hostile])
    write(page, START, record_of_all, record(2), done(), ends=True)

    tab.sees(re.compile("It is so"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")

    assert page.locator("#records img").count() == 0
    assert "9223372036854775809" in page.locator(".details").inner_text()
    assert "⟨202E⟩␀" in page.locator("tr.record td").nth(3).inner_text()
    page.keyboard.press("Escape")
    assert page.locator(".details").count() == 0


def test_a_record_is_copied_with_all_that_is_in_it(tab: Visitor) -> None:
    page = open_messages(tab)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    write(page, START, record(7, part("it's $(id)")), done(), ends=True)
    page.locator("tr.record").first.click()

    tab.press("button", "kcat: write it")

    tab.sees("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == ("printf %s 'it'\\''s $(id)' | kcat -P -b 127.0.0.1:9092 -t orders -p 0 -k k")


def test_a_stream_stops_at_once(tab: Visitor) -> None:
    page = open_messages(tab)
    write(page, START, record(1))
    expect(page.locator("tr.record")).to_have_count(1, timeout=PATIENCE_MS)

    took = page.evaluate(
        """() => {
          const begun = performance.now();
          document.querySelector("#stop").click();
          return window.streams[0].abortedAt - begun;
        }"""
    )

    assert 0 <= took < 200
    tab.sees(re.compile("You stopped it"))
    expect(page.locator("#retry")).to_be_visible(timeout=PATIENCE_MS)


def test_a_tail_that_is_held_loses_nothing(tab: Visitor) -> None:
    page = open_messages(tab, "?mode=tail")
    write(page, START, record(0))
    expect(page.locator("tr.record")).to_have_count(1, timeout=PATIENCE_MS)

    tab.press("button", "Hold")
    for start in range(1, 1001, 100):
        write(page, *(record(offset) for offset in range(start, start + 100)))

    # With as many as may wait the stream is closed, and goes on behind the last of them.
    tab.sees("Paused: 1,000 waiting, more held back at the broker")
    assert rows(page) == 1
    assert page.evaluate("window.streams[0].abortedAt") > 0
    tab.press("button", "Resume")
    page.wait_for_function("window.streams.length === 2")
    assert "mode=tail&" in page.evaluate("window.streams[1].address")
    assert "cursor=0%3A1001" in page.evaluate("window.streams[1].address")
    for start in range(1001, 3001, 100):
        write(page, *(record(offset) for offset in range(start, start + 100)))
    expect(page.locator("tr.record").last).to_contain_text("3,000", timeout=PATIENCE_MS)
    # None twice, and none left out; those that are not kept are counted.
    last = page.locator("tr.record td:nth-child(2)").all_inner_texts()
    assert [int(text.replace(",", "")) for text in last] == list(range(1001, 3001))
    tab.sees(re.compile("1,001 earlier rows dropped"))


def test_a_tail_in_the_background_waits_for_whoever_looks(tab: Visitor) -> None:
    page = open_messages(tab, "?mode=tail")
    write(page, START, record(0))
    expect(page.locator("tr.record")).to_have_count(1, timeout=PATIENCE_MS)
    hide = """(isHidden) => {
      Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""

    page.evaluate(hide, True)
    write(page, record(1), record(2))
    tab.sees("Paused: 2 waiting")
    assert rows(page) == 1
    page.evaluate(hide, False)

    expect(page.locator("tr.record")).to_have_count(3, timeout=PATIENCE_MS)
    assert page.evaluate("window.streams.length") == 1


def test_a_tail_that_broke_off_goes_on_where_it_was(tab: Visitor) -> None:
    page = open_messages(tab, "?mode=tail")
    write(page, START, record(41), ends=True)
    tab.sees(re.compile("broke off"))

    tab.press("button", "Continue from here")
    page.wait_for_function("window.streams.length === 2")

    assert "cursor=0%3A42" in page.evaluate("window.streams[1].address")
    assert rows(page) == 1


def test_a_gap_is_a_row_of_its_own(tab: Visitor) -> None:
    page = open_messages(tab, "?mode=tail")
    gap = {
        "type": "gap",
        "partition": 0,
        "from": "5",
        "to": "9",
        "next": "9",
        "records": 4,
        "reason": "retention has passed them",
    }
    write(page, START, record(1), gap, record(9))

    tab.sees(re.compile("4 records, offsets 5 up to 9 are missing: retention has passed them"))


def test_more_is_loaded_by_the_cursor_behind_what_is_there(tab: Visitor) -> None:
    page = open_messages(tab)
    following = {"mode": "newest", "cursor": "0:5"}
    write(page, START, record(9), done("limit", "1 record", next=following), ends=True)

    tab.press("button", "Load older")
    page.wait_for_function("window.streams.length === 2")
    write(page, START, record(4), done(), ends=True)

    expect(page.locator("tr.record")).to_have_count(2, timeout=PATIENCE_MS)
    assert "cursor=0%3A5" in page.evaluate("window.streams[1].address")
    expect(page.locator("#more")).to_be_hidden(timeout=PATIENCE_MS)


def test_a_bar_tells_how_far_its_partition_was_read(tab: Visitor) -> None:
    span = {"partition": 0, "start": "0", "end": "100", "from": "0", "to": "100"}
    cases: list[tuple[str, str, int, float]] = [
        ("oldest", "25", 3, 0.25),
        ("newest", "75", 3, 0.25),
        ("newest", "0", 0, 0.0),
        ("newest", "100", 10, 0.1),
    ]
    for mode, at, records, wanted in cases:
        page = open_messages(tab, f"?mode={mode}&filter=x")
        progress = {"partitions": [[0, at, "100", records, 50]], "records": records, "hits": 0}

        write(page, {**START, "partitions": [span]}, {"type": "progress", **progress, "ms": 100})

        tab.sees(re.compile("records? looked at"))
        assert page.locator("progress").evaluate("bar => bar.value") == wanted, (mode, at)


def test_a_picked_time_is_written_as_it_is_typed_and_read_from_there_on(tab: Visitor) -> None:
    page = open_messages(tab)

    page.locator("[data-pick]").first.click()
    page.locator("input[type=datetime-local]").first.evaluate(
        """(picker) => {
          picker.value = "2026-11-19T12:00:30";
          picker.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    page.keyboard.press("Escape")
    assert page.locator("#since").input_value() == "2026-11-19 12:00:30"
    page.locator("#since").press("Enter")

    page.wait_for_url(re.compile("mode=oldest&from=2026-11-19T12%3A00%3A30Z"))


def test_the_rate_of_a_tail_is_that_of_its_last_seconds(tab: Visitor) -> None:
    page = open_messages(tab, "?mode=tail")
    told = {"type": "progress", "partitions": [], "hits": 0}
    waited = [{**told, "records": 0, "ms": ms} for ms in range(250, 60_000, 250)]
    burst = [{**told, "records": ms - 60_000, "ms": ms} for ms in range(60_000, 66_000, 250)]

    write(page, START, *waited)
    expect(page.locator("#sum")).to_have_text("0/s")
    write(page, *burst)
    expect(page.locator("#sum")).to_have_text("1,000/s")
    write(page, *({**told, "records": 5750, "ms": ms} for ms in range(66_000, 72_000, 250)))
    expect(page.locator("#sum")).to_have_text("0/s")


def test_columns_are_as_wide_as_what_they_hold(tab: Visitor) -> None:
    page = open_messages(tab)
    wide = part(json.dumps({"text": "long " * 60}), kind="json")
    frames = [record(number, wide) for number in range(20)]
    write(page, START, *frames, done(), ends=True)
    tab.sees(re.compile("It is so"))
    # The widths of fonts differ from machine to machine.
    page.evaluate(
        "document.querySelectorAll('#records td').forEach((cell) => (cell.style.fontSize = '14px'))"
    )

    for width, least in ((1680, 0.5), (1280, 0.4), (390, 0.25)):
        page.set_viewport_size({"width": width, "height": 860})
        is_cut, value, table = page.evaluate(
            """() => {
              const cells = [...document.querySelectorAll("tr.record:first-child > td")];
              const isCut = (cell) => cell.scrollWidth > cell.clientWidth;
              const width = (box) => box.getBoundingClientRect().width;
              return [cells.map(isCut), width(cells[4]), width(document.querySelector("#records"))];
            }"""
        )
        assert is_cut == [False, False, False, False, True, False, False], width
        assert value > least * table, width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_record_is_a_state_of_its_own(tab: Visitor) -> None:
    page = open_messages(tab, "?filter=nothing")
    write(page, START, done("complete", "complete: 0 hits in 12 records"), ends=True)

    tab.sees("No record matches")
    tab.sees("0 hits in 12 records")
    assert page.locator("#verdict").inner_text().startswith("Complete")


def test_each_failure_says_what_can_be_done(tab: Visitor) -> None:
    cases: list[tuple[int, str, str, bool]] = [
        (401, '{"message": "sign in first", "next_step": ""}', "Signed out", False),
        (403, '{"message": "you may not", "next_step": "ask"}', "Not allowed", False),
        (429, '{"message": "too many", "next_step": "close one"}', "Busy", True),
        (500, "<html>", "Failed", True),
        (0, "", "No answer", True),
    ]
    for status, text, words, can_retry in cases:
        page = open_messages(tab, f"?{refused(status, text)}")

        tab.sees(words)
        assert page.locator("#retry").is_visible() is can_retry, words


def test_a_stream_that_breaks_off_is_not_taken_for_the_end(tab: Visitor) -> None:
    page = open_messages(tab)
    write(page, START, record(1), ends=True)

    tab.sees(re.compile("broke off.* 1 record came before"))
    expect(page.locator("#retry")).to_be_visible(timeout=PATIENCE_MS)


def test_a_mistake_in_the_filter_is_shown_where_it_is(tab: Visitor) -> None:
    refusal = refused(
        400, '{"message": "a name is missing", "next_step": "type one", "position": 6}'
    )

    page = open_messages(tab, f"?filter=value%20%3E%203&{refusal}")

    tab.sees("At character 7")
    assert page.locator("#filter-problem mark").inner_text() == ">"
    expect(page.locator("#filter")).to_be_focused(timeout=PATIENCE_MS)


def test_the_page_is_for_everybody(tab: Visitor) -> None:
    page = open_messages(tab)
    kinds = [part(None), part("", kind="empty"), part("00ff", kind="hex", bytes=2)]
    cut = part("x" * 2000, is_cut=True, bytes=18_000_000, schema_id=4)
    frames = [record(number, value) for number, value in enumerate([*kinds, cut])]
    json_part = part('{"a": [1, true, "x"]}', kind="json")
    header = {"name": "h", "value": part("v")}
    write(page, START, record(9, json_part, headers=[header]), *frames)
    progress = {"partitions": [["0", "50", "99", 5, 100]], "records": 5, "hits": 5, "ms": 900}
    write(page, {"type": "progress", **progress}, done(), ends=True)
    tab.sees(re.compile("It is so"))
    for number in (0, 4):
        page.locator("tr.record").nth(number).click()
    page.locator("details.reaches summary").click()

    found = accessibility.complaints(page)
    page.emulate_media(color_scheme="dark")
    found += accessibility.complaints(page, only_colours=True)

    assert found == []
