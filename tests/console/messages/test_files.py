"""Records that leave as files."""

import asyncio
import csv
import io
import json
from base64 import b64decode
from typing import Any

import pytest
from django.contrib.auth.models import User

from console.events.hub import Hub, Owner
from console.messages.endpoint import EXPORT, RECORD, Endpoint
from console.messages.jobs import Means
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Operation, Role
from gateway.kafka.readers.pipe import MAX_WAITING_BYTES
from tests.builders import users
from tests.builders.messages import CLUSTER, FakeSource, places, record
from tests.fakes.asgi_browser import Browser, FakeAsker
from tests.fakes.searching_brokers import SearchingBrokers

QUERY = f"cluster={CLUSTER}&topic=orders"


@pytest.fixture
def olga() -> User:
    return users.user("olga", role=Role.OPERATOR)


def asked(browser: Browser, source: FakeSource, user: User, *grants: Grant) -> Browser:
    rights = Rights(grants or [Grant(role=Role.OPERATOR)])
    owner = Owner(user_id=user.pk, session_key="o", rights=rights)
    means = Means(
        places_of=lambda _: places(*source.partitions, port=1),
        source_of=lambda _admission, _places: source,
        ask=SearchingBrokers(source.partitions),
    )

    async def ask() -> None:
        served = Endpoint(Hub(), FakeAsker(owner), means)
        await served(browser.scope, browser.receive, browser.send)

    asyncio.run(ask())
    return browser


def export(source: FakeSource, user: User, **fields: Any) -> Browser:
    headers = {name: fields.pop(name) for name in ("cookie",) if name in fields}
    query = QUERY + "".join(f"&{name}={value}" for name, value in fields.items())
    return asked(Browser(query, path=EXPORT, **headers), source, user)


def part(source: FakeSource, user: User, *, offset: int = 0, name: str = "value") -> Browser:
    query = f"{QUERY}&partition=0&offset={offset}&part={name}"
    return asked(Browser(query, path=RECORD), source, user)


def content(browser: Browser) -> bytes:
    return b"".join(piece.get("body", b"") for piece in browser.told[1:])


def header(browser: Browser, name: bytes) -> str:
    return dict(browser.told[0]["headers"])[name].decode()


HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", '"; DROP', "a,b\nc", "<script>"]


def test_lines_of_json_hold_whole_records_and_how_the_file_ends(olga: User) -> None:
    big = b"x" * 100_000
    source = FakeSource({0: [record(0, value=big, key=None, timestamp_ms=1_795_082_400_123)]})

    browser = export(source, olga, mode="oldest")

    lines = [json.loads(line) for line in browser.text.splitlines()]
    assert lines[0]["value"] == big.decode()
    assert (lines[0]["key"], lines[0]["key_kind"]) == (None, "null")
    assert lines[0]["timestamp"] == "2026-11-19T10:00:00.123+00:00"
    assert lines[-1]["type"] == "done"
    assert lines[-1]["verdict"] == "complete"
    assert header(browser, b"content-disposition") == 'attachment; filename="orders.ndjson"'


def test_times_are_in_the_zone_of_the_pages(olga: User) -> None:
    source = FakeSource({0: [record(0, timestamp_ms=1_795_082_400_123)]})

    browser = export(source, olga, cookie="samsa-times=local; samsa-zone=Europe/Berlin")

    assert "2026-11-19T11:00:00.123+01:00" in browser.text


def test_no_cell_of_a_csv_is_a_formula(olga: User) -> None:
    source = FakeSource(
        {
            0: [
                record(n, value=text.encode(), key=text.encode(), headers=((text, b"=1"),))
                for n, text in enumerate(HOSTILE)
            ]
        }
    )

    browser = export(source, olga, mode="oldest", form="csv")

    rows = list(csv.reader(io.StringIO(browser.text, newline="")))
    assert [row[6].removeprefix("'") for row in rows[1:-1]] == HOSTILE
    formulas = ("=", "+", "-", "@", "\t", "\r", "\n")
    assert not any(cell.startswith(formulas) for row in rows for cell in row)
    assert rows[-1] == ["# done: complete: 9 records, there are no more"]


def bytes_of(row: dict[str, Any], part: str) -> bytes | None:
    """Rebuild a part of a record as docs/howto/find-records.md says."""
    if row[f"{part}_kind"] == "null":
        return None
    coded = row[f"{part}_base64"]
    return b64decode(coded) if coded else row[part].encode()


def headers_of(row: dict[str, Any]) -> list[list[Any]]:
    if row["headers_base64"]:
        coded = json.loads(row["headers_base64"])
        return [[b64decode(n).decode(), None if v is None else b64decode(v)] for n, v in coded]
    return [[n, None if v is None else v.encode()] for n, v in json.loads(row["headers"])]


PARTS = [
    *(
        None,
        b"",
        b"text",
        b'{"id": 9007199254740993,  "x": "Z\\u00fcrich"}',
        b"\x00\x00\x00\x00*notavro",
    ),
    *(b"\x00\x00\x00\x00*\x02\x06abc", b"\xff\xfe", b"\xfb\xff", b"\x82\xa1a\xcc\x01\xa1b\xc0"),
    *(
        b"\x00\x00\x00\x07",
        b"=1+1",
        b"'=1",
        b'a;=b\r\n,"',
        b" \t-1",
        "\ufeffü\u2028".encode(),
        b"7" * 20,
    ),
]


@pytest.mark.parametrize("form", ["ndjson", "csv"])
@pytest.mark.parametrize("shown", ["auto", "text", "hex", "base64", "int32", "msgpack"])
def test_records_can_be_rebuilt_from_a_file_byte_for_byte(
    olga: User, form: str, shown: str
) -> None:
    source = FakeSource(
        {
            0: [
                record(n, key=part, value=part, headers=(("h;=1", part), ("ü", b"x" * 20_000)))
                for n, part in enumerate(PARTS)
            ]
        }
    )

    text = export(source, olga, mode="oldest", form=form, key=shown, value=shown).text

    if form == "csv":
        rows: list[Any] = list(csv.DictReader(io.StringIO(text, newline="")))[:-1]
    else:
        rows = [json.loads(line) for line in text.split("\n")[:-2]]
        for row in rows:
            row["headers"] = json.dumps(row["headers"])
            row["headers_base64"] = row["headers_base64"] and json.dumps(row["headers_base64"])
    assert [bytes_of(row, "value") for row in rows] == PARTS
    assert [bytes_of(row, "key") for row in rows] == PARTS
    for row, part in zip(rows, PARTS, strict=True):
        assert headers_of(row) == [["h;=1", part], ["ü", b"x" * 20_000]]
    if shown == "auto":
        assert str(rows[4]["value_schema_id"]) == "42"
        assert rows[4]["value"] == "notavro"


def test_a_time_that_is_no_date_is_written_as_its_number(olga: User) -> None:
    source = FakeSource({0: [record(0, timestamp_ms=2**62)]})

    assert str(2**62) in export(source, olga).text


def test_a_filtered_export_holds_more_hits_than_a_broker_answers_at_a_time(
    olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.kafka.readers.hits.MAX_HITS", 10)
    source = FakeSource({0: [record(n, value=b"needle") for n in range(50)]})

    browser = export(source, olga, mode="oldest", limit=35, filter="needle")

    lines = browser.text.splitlines()
    assert [int(json.loads(line)["offset"]) for line in lines[:-1]] == list(range(35))
    assert json.loads(lines[-1])["verdict"] == "limit"


def test_an_export_is_bounded(olga: User) -> None:
    browser = export(FakeSource({0: []}), olga, limit=100_001)

    assert browser.status == 400
    assert "1 to 100,000" in browser.text


def test_a_tail_is_no_file(olga: User) -> None:
    assert export(FakeSource({0: []}), olga, mode="tail").status == 400


def test_who_may_read_may_not_take_away(olga: User) -> None:
    source = FakeSource({0: [record(0)]})
    grant = Grant(operation=Operation.READ_PAYLOADS)

    for path, more in ((EXPORT, ""), (RECORD, "&partition=0&offset=0")):
        browser = asked(Browser(QUERY + more, path=path), source, olga, grant)

        assert browser.status == 403
        assert "export" in browser.text


def test_who_takes_records_away_is_told_to_the_audit(
    olga: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "gateway.access.audit")
    source = FakeSource({0: [record(0)]})

    export(source, olga, filter="needle")
    part(source, olga)

    exported, downloaded = (one.getMessage() for one in caplog.records)
    assert exported.startswith('records.exported actor="olga" address="127.0.0.1"')
    assert f'subject="topic orders of cluster {CLUSTER}"' in exported
    assert 'filter="needle"' in exported
    assert 'place="0:0" part="value"' in downloaded


@pytest.mark.parametrize(
    ("name", "expected"),
    [("key", b"\x00k"), ("value", b"<script>"), ("header:1", b"two")],
)
def test_a_part_of_a_record_is_downloaded_as_it_is(olga: User, name: str, expected: bytes) -> None:
    headers = (("a", None), ("b", b"two"))
    source = FakeSource({0: [record(0, value=b"<script>", key=b"\x00k", headers=headers)]})

    browser = part(source, olga, name=name)

    assert content(browser) == expected
    assert header(browser, b"content-type") == "application/octet-stream"
    disposition = header(browser, b"content-disposition")
    assert disposition == f'attachment; filename="orders-0-0-{name.replace(":", "-")}.bin"'


def test_a_large_value_leaves_in_pieces(olga: User) -> None:
    value = bytes(range(256)) * 4 * 1024 * 18
    source = FakeSource({0: [record(0, value=value)]})

    browser = part(source, olga)

    assert content(browser) == value
    assert max(len(piece.get("body", b"")) for piece in browser.told) <= MAX_WAITING_BYTES


def test_an_empty_value_is_an_empty_file(olga: User) -> None:
    browser = part(FakeSource({0: [record(0, value=b"")]}), olga)

    assert (browser.status, content(browser)) == (200, b"")


@pytest.mark.parametrize(
    ("name", "offset", "message"),
    [
        ("value", 0, "the value is null"),
        ("header:0", 0, "has 0 headers"),
        ("key", 5, "no record at offset 5"),
    ],
)
def test_what_is_not_there_is_told(olga: User, name: str, offset: int, message: str) -> None:
    source = FakeSource({0: [record(0, value=None), record(9)]})

    browser = part(source, olga, name=name, offset=offset)

    assert browser.status == 404
    assert message in browser.text


@pytest.mark.parametrize("name", ["header:x", "header:-1", "headers", "value:1", ""])
def test_a_part_that_is_none_is_refused(olga: User, name: str) -> None:
    assert part(FakeSource({0: []}), olga, name=name).status == 400
