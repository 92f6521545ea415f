"""The form of one record: errors by field, and a record where there are none."""

from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.http import QueryDict
from django.utils import timezone

from console.forms.records import MAX_HEADERS, RecordForm, again, form_of
from gateway.kafka.values import NewRecord, Record


def posted(*, max_bytes: int | None = None, **fields: str | list[str]) -> RecordForm:
    query = QueryDict(mutable=True)
    for name, value in {"key_kind": "null", "value": "v", **fields}.items():
        query.setlist(name, value if isinstance(value, list) else [value])
    return form_of(query, partitions=3, max_bytes=max_bytes)


def test_a_value_alone_is_a_record() -> None:
    form = posted()

    assert form.record == NewRecord(key=None, value=b"v")
    assert form.errors == {}


def test_all_fields_go_into_the_record() -> None:
    form = posted(
        key_kind="hex",
        key="00ff",
        value_kind="json",
        value='{"a": 1}',
        header_name=["trace", "none", "bare", "", "twice", "twice"],
        header_kind=["text", "null", "text", "text", "hex", "base64"],
        header=["x y", "", "", "", "00", "AA=="],
        partition="2",
        timestamp="1700000000000",
    )

    assert form.record == NewRecord(
        key=b"\x00\xff",
        value=b'{"a": 1}',
        headers=(
            ("trace", b"x y"),
            ("none", None),
            ("bare", b""),
            ("twice", b"\0"),
            ("twice", b"\0"),
        ),
        partition=2,
        timestamp_ms=1_700_000_000_000,
    )


def test_every_field_tells_its_own_mistake_and_keeps_what_was_typed() -> None:
    form = posted(
        key_kind="text",
        value_kind="json",
        value="{",
        header_name=[""],
        header_kind=["text"],
        header=["x"],
        partition="3",
        timestamp="soon",
    )

    assert form.record is None
    assert set(form.errors) == {"key", "value", "headers", "partition", "timestamp"}
    assert "'3' is not a partition of this topic: give 0 to 2" in form.errors["partition"]
    assert "'soon' is not a time" in form.errors["timestamp"]
    assert (form.value.text, form.headers[0].part.text, form.timestamp) == ("{", "x", "soon")


@pytest.mark.parametrize("partition", ["-1", "x", "9" * 30, "²", "1.0"])
def test_a_partition_is_a_number_of_the_topic(partition: str) -> None:
    assert "partition" in posted(partition=partition).errors


@pytest.mark.parametrize("typed", ["0", "9" * 19, "9999-99-99", "0001-01-01", "1969-01-01"])
def test_a_time_that_cannot_be_sent_is_refused(typed: str) -> None:
    assert "timestamp" in posted(timestamp=typed).errors


def test_a_time_without_an_offset_is_of_the_zone_of_the_pages() -> None:
    with timezone.override(ZoneInfo("Europe/Berlin")):
        berlin = posted(timestamp="2026-01-31 12:00").record
    with timezone.override(UTC):
        utc = posted(timestamp="2026-01-31T11:00:00").record

    assert berlin is not None
    assert utc is not None
    assert berlin.timestamp_ms == utc.timestamp_ms == 1_769_857_200_000


def test_a_record_larger_than_the_topic_takes_is_refused_before_it_is_sent() -> None:
    form = posted(value="x" * 1000, max_bytes=1024)

    assert "1,000 bytes, and this topic takes up to 1,024" in form.errors["value"]
    assert posted(value="x" * 1000, max_bytes=2048).errors == {}


def test_headers_are_bounded() -> None:
    names = [f"h{number}" for number in range(MAX_HEADERS + 1)]

    form = posted(header_name=names, header_kind=["text"] * 51, header=["x"] * 51)

    assert form.errors["headers"] == "51 headers are typed: 50 are the most here"
    assert len(form.rows) == MAX_HEADERS


def test_a_header_of_several_lines_is_written_in_bytes_as_its_field_has_one_line() -> None:
    record = Record(
        topic="t", partition=0, offset=0, key=b"a\nb", value=None, headers=(("h", b"a\nb"),)
    )

    form = again(record)

    assert (form.key.kind, form.key.text) == ("text", "a\nb")
    assert (form.headers[0].part.kind, form.headers[0].part.text) == ("hex", "610a62")


def test_a_record_can_be_written_again_as_it_is() -> None:
    record = Record(
        topic="orders",
        partition=1,
        offset=5,
        key=b"\xff",
        value=None,
        headers=(("a", b"1"), ("b", None), ("c", b"")),
    )
    form = again(record)
    fields: dict[str, Any] = {
        "key_kind": form.key.kind,
        "key": form.key.text,
        "value_kind": form.value.kind,
        "value": form.value.text,
        "header_name": [row.name for row in form.headers],
        "header_kind": [row.part.kind for row in form.headers],
        "header": [row.part.text for row in form.headers],
        "partition": form.partition,
    }

    assert posted(**fields).record == NewRecord(
        key=b"\xff", value=None, headers=record.headers, partition=1
    )
