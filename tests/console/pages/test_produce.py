"""The form that writes one record, as a browser goes through it."""

import logging
from html import unescape
from typing import Any

import pytest
from django.test import Client

from brokers.controlplane import models
from console import producing
from gateway.access.operations import Kind, Operation
from gateway.access.turns import TooBusy
from gateway.kafka.errors import failure
from gateway.kafka.readers.admission import Admission
from gateway.kafka.values import Delivered, NewRecord, Record
from tests.builders import users
from tests.console import cluster_rows

SHOWN = cluster_rows.CLUSTER_ID
PATH = f"/topics/orders/produce?cluster={SHOWN}"
FORM = {"key_kind": "text", "key": "k", "value_kind": "text", "value": "v"}


class Log:
    """Stands for the brokers: keeps what is written, or fails."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str, NewRecord]] = []
        self.error: Exception | None = None

    def write(self, bootstrap: str, topic: str, record: NewRecord) -> Delivered:
        if self.error is not None:
            raise self.error
        self.written.append((bootstrap, topic, record))
        return Delivered(partition=2, offset=9_007_199_254_740_993)


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    cluster = cluster_rows.cluster()
    cluster_rows.broker(cluster, 1)
    cluster_rows.topic(cluster, "orders", partitions=3, configs={"max.message.bytes": "2000"})
    made = Log()
    monkeypatch.setattr(producing, "write", made.write)
    return made


def test_a_record_is_written_and_shown(
    olga: Client, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="gateway.access.audit"):
        answer = olga.post(PATH, {**FORM, "value": "a\r\nsecret"})

    assert log.written == [("127.0.0.1:9092", "orders", NewRecord(key=b"k", value=b"a\nsecret"))]
    assert answer["Location"] == (
        f"/topics/orders/messages?cluster={SHOWN}&mode=offset&partitions=2"
        "&from=9007199254740993&limit=1"
    )
    page = olga.get(answer["Location"]).content.decode()
    assert "The record is written: offset 9007199254740993 of partition 2." in page
    assert "record.produced" in caplog.text
    assert '"olga"' in caplog.text
    assert '"9007199254740993"' in caplog.text
    assert "secret" not in caplog.text


def test_who_may_write_and_not_read_stays_on_the_form(log: Log) -> None:
    user = users.user("writer", role=None)
    users.grant(user, Operation.PRODUCE, kind=Kind.TOPIC, pattern="orders")
    browser = Client()
    browser.force_login(user)
    users.grant(user, Operation.VIEW, kind=Kind.TOPIC, pattern="orders")

    answer = browser.post(PATH, FORM)

    assert log.written
    assert answer["Location"] == PATH
    assert "The record is written" in browser.get(PATH).content.decode()


def test_a_viewer_can_neither_see_the_form_nor_send_it(victor: Client, log: Log) -> None:
    assert victor.get(PATH).status_code == 403
    assert victor.post(PATH, FORM).status_code == 403
    assert log.written == []


def test_a_right_on_one_topic_is_none_on_another(log: Log) -> None:
    user = users.user("writer", role=None)
    for operation in (Operation.VIEW, Operation.PRODUCE):
        users.grant(user, operation, kind=Kind.TOPIC, pattern="payments")
    browser = Client()
    browser.force_login(user)

    assert browser.post(PATH, FORM).status_code == 403
    assert log.written == []


def test_another_site_cannot_send_it(olga: Client, log: Log) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = olga.cookies

    assert strict.post(PATH, FORM).status_code == 403
    assert log.written == []


def test_mistakes_stand_by_their_fields_and_what_was_typed_stays(olga: Client, log: Log) -> None:
    bad = {**FORM, "value_kind": "json", "value": '\n{"a": <b>}', "partition": "7"}

    answer = olga.post(PATH, bad)

    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Nothing was written" in page
    assert "'7' is not a partition of this topic: give 0 to 2" in unescape(page)
    assert "It is not JSON" in page
    # The line end that a browser takes away, and the one that was typed.
    assert "\n\n{&quot;a&quot;: &lt;b&gt;}</textarea>" in page
    assert log.written == []


def test_the_limit_of_the_topic_is_told_before_anything_is_sent(olga: Client, log: Log) -> None:
    assert "up to 2,000 bytes" in olga.get(PATH).content.decode()

    answer = olga.post(PATH, {**FORM, "value": "x" * 2000})

    assert "this topic takes up to 2,000" in answer.content.decode()
    assert log.written == []


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("MESSAGE_TOO_LARGE", 400, "Refused"),
        ("REQUEST_TIMED_OUT", 503, "The record may have been written all the same"),
        ("BROKER_NOT_AVAILABLE", 503, "The record may have been written all the same"),
        ("NOT_ENOUGH_REPLICAS", 400, "bring the missing brokers back"),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", 503, "The record may have been written all the same"),
    ],
)
def test_a_failure_says_what_happened_and_what_to_do(
    olga: Client, log: Log, name: str, status: int, words: str
) -> None:
    log.error = failure(name, "topic orders")

    answer = olga.post(PATH, FORM)

    page = answer.content.decode()
    assert answer.status_code == status
    assert name in page
    assert words.lower() in page.lower()
    assert ">\nv</textarea>" in page


def test_no_more_wait_for_brokers_than_is_good(olga: Client, log: Log) -> None:
    log.error = TooBusy("8 records are being written")

    answer = olga.post(PATH, FORM)

    assert answer.status_code == 429
    assert "Send it again" in answer.content.decode()


def test_a_form_of_megabytes_is_refused_with_its_reason(olga: Client, log: Log) -> None:
    answer = olga.post(PATH, {**FORM, "value": "x" * 3_000_000})

    assert answer.status_code == 400
    assert "larger than 2,621,440 bytes" in answer.content.decode()
    assert log.written == []


def test_a_topic_that_is_gone_is_not_made_by_writing_to_it(olga: Client, log: Log) -> None:
    answer = olga.post(f"/topics/payments/produce?cluster={SHOWN}", FORM)

    assert answer.status_code == 404
    assert "There is no topic “payments”" in answer.content.decode()
    assert log.written == []


def test_a_record_goes_to_no_other_cluster_than_the_one_that_was_named(
    olga: Client, log: Log
) -> None:
    answer = olga.post("/topics/orders/produce?cluster=gone", FORM)

    assert answer.status_code == 404
    assert log.written == []


def test_a_record_is_written_again_from_its_place(
    olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record_at(
        _admission: Admission, _bootstrap: str, topic: str, partition: int, offset: int
    ) -> Record | None:
        headers = (("h\"'", b"<i>"),)
        return Record(
            topic=topic, partition=partition, offset=offset, key=None, value=b"<b>", headers=headers
        )

    monkeypatch.setattr(producing, "record_at", record_at)

    page = olga.get(f"{PATH}&again=1:42").content.decode()

    assert "&lt;b&gt;</textarea>" in page
    assert 'value="h&quot;&#x27;"' in page
    assert 'name="partition" class="mono" inputmode="numeric" value="1"' in page


@pytest.mark.parametrize(
    ("place", "found", "words"),
    [
        ("<b>", None, "names no record"),
        ("1:42", None, "no longer holds a record"),
        ("1:42", failure("OFFSET_OUT_OF_RANGE", "topic orders"), "could not be read"),
        ("1:42", b"x" * 300_000, "has 300,000 bytes"),
    ],
)
def test_a_record_that_cannot_be_had_is_said_and_the_form_is_there(
    olga: Client,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    found: bytes | Exception | None,
    words: str,
) -> None:
    def record_at(
        _admission: Admission, _bootstrap: str, topic: str, partition: int, offset: int
    ) -> Record | None:
        if isinstance(found, Exception):
            raise found
        if found is None:
            return None
        return Record(topic=topic, partition=partition, offset=offset, key=None, value=found)

    monkeypatch.setattr(producing, "record_at", record_at)

    answer = olga.get(PATH, {"cluster": SHOWN, "again": place})

    assert answer.status_code == 200
    assert words in unescape(answer.content.decode())
    assert "<b>" not in answer.content.decode()
    assert "</textarea>" in answer.content.decode()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"has_unread_headers": True}, "no form can hold"),
        ({"headers": (("a\nb", b""),)}, "no form can hold"),
        ({"headers": (("a", b"x" * 300_000),)}, "has 300,000 bytes"),
    ],
)
def test_a_record_whose_headers_would_be_others_is_not_begun_with(
    olga: Client, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], words: str
) -> None:
    record = Record(topic="orders", partition=1, offset=42, key=None, value=b"v", **more)
    monkeypatch.setattr(producing, "record_at", lambda *_: record)

    page = olga.get(PATH, {"cluster": SHOWN, "again": "1:42"}).content.decode()

    assert words in unescape(page)
    assert ">v</textarea>" not in page


def test_a_record_is_not_read_for_those_who_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    user = users.user("writer", role=None)
    for operation in (Operation.VIEW, Operation.PRODUCE):
        users.grant(user, operation, kind=Kind.TOPIC, pattern="orders")
    browser = Client()
    browser.force_login(user)
    monkeypatch.setattr(producing, "record_at", lambda *_: pytest.fail("it was read"))

    page = browser.get(f"{PATH}&again=1:42").content.decode()

    assert "You may not read payloads on topic orders" in page


def test_topics_that_brokers_keep_are_not_written_by_hand(olga: Client, log: Log) -> None:
    cluster_rows.topic(models.Cluster.objects.get(), "__consumer_offsets")
    path = f"/topics/__consumer_offsets/produce?cluster={SHOWN}"

    answers = [olga.get(path), olga.post(path, FORM)]

    for answer in answers:
        assert answer.status_code == 400
        assert "It keeps the committed offsets of every group" in answer.content.decode()
    assert ">Produce<" not in olga.get("/topics/__consumer_offsets/messages").content.decode()
    assert log.written == []
