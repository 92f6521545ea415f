"""Folders follow from records alone."""

import datetime
from typing import Any

import pytest

from connectors.plugins.s3.partitioners import (
    DAILY,
    DAY_MS,
    HOUR_MS,
    HOURLY,
    ByField,
    ByPartition,
    ByTime,
    time_pattern,
)
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.schemas import STRING, Field, Schema, Struct, Type
from connectors.sdk.testing import sink_record

NOON_MS = 1_795_089_600_000  # 2026-11-19T12:00:00Z


def test_the_default_folder_is_the_partition() -> None:
    assert ByPartition().folder(sink_record({}, partition=7)) == "partition=7"


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        ({"a": "x", "b": {"c": 1}}, "a=x/b.c=1"),
        ({"a": "x/../y", "b": {"c": True}}, "a=x%2F..%2Fy/b.c=true"),
        ({"a": "..", "b": {"c": 1.5}}, "a=%2E%2E/b.c=1.5"),
        ({"a": "ä\n", "b": {"c": "a b"}}, "a=%C3%A4%0A/b.c=a b"),
    ],
)
def test_fields_name_folders_which_no_value_leaves(value: Any, folder: str) -> None:
    assert ByField(["a", "b.c"]).folder(sink_record(value)) == folder


def test_fields_of_structs_name_folders_too() -> None:
    schema = Schema(type=Type.STRUCT, fields=(Field(name="a", schema=STRING),))
    record = sink_record(Struct(schema, {"a": "x"}), value_schema=schema)

    assert ByField(["a"]).folder(record) == "a=x"
    assert ByField(["a"], shows_names=False).folder(record) == "x"


@pytest.mark.parametrize("value", [{}, {"a": None}, "text", None, {"a": []}, {"a": {"b": 1}}])
def test_a_record_without_the_field_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="field a"):
        ByField(["a"]).folder(sink_record(value))


@pytest.mark.parametrize(
    ("zone", "path_format", "duration_ms", "folder"),
    [
        ("UTC", DAILY, DAY_MS, "year=2026/month=11/day=19"),
        ("UTC", HOURLY, HOUR_MS, "year=2026/month=11/day=19/hour=12"),
        ("Asia/Tokyo", HOURLY, HOUR_MS, "year=2026/month=11/day=19/hour=21"),
        ("Asia/Kolkata", "dd'T'HH-mm-ss", 2 * HOUR_MS, "19T16-00-00"),
        ("Pacific/Kiritimati", DAILY, DAY_MS, "year=2026/month=11/day=20"),
        ("UTC", "'100%'/YYYY", 1, "100%/2026"),
    ],
)
def test_times_name_folders_in_their_zone(
    zone: str, path_format: str, duration_ms: int, folder: str
) -> None:
    by_time = ByTime(path_format, duration_ms=duration_ms, zone=zone)

    assert by_time.folder(sink_record({}, timestamp_ms=NOON_MS)) == folder


@pytest.mark.parametrize(
    "at",
    [
        NOON_MS,
        "2026-11-19T12:00:00Z",
        "2026-11-19T13:00:00+01:00",
        "2026-11-19 12:00:00",
        datetime.datetime(2026, 11, 19, 12, tzinfo=datetime.UTC),
    ],
)
def test_the_time_may_be_a_field(at: Any) -> None:
    by_time = ByTime(HOURLY, duration_ms=HOUR_MS, zone="UTC", field="at")

    assert by_time.folder(sink_record({"at": at})).endswith("hour=12")


@pytest.mark.parametrize("at", ["soon", [], True, 10**30])
def test_what_is_no_time_is_refused(at: Any) -> None:
    by_time = ByTime(HOURLY, duration_ms=HOUR_MS, zone="UTC", field="at")

    with pytest.raises(DataError, match="time"):
        by_time.folder(sink_record({"at": at}))


def test_a_record_without_a_time_is_refused() -> None:
    with pytest.raises(DataError, match="no time"):
        ByTime(DAILY, duration_ms=DAY_MS, zone="UTC").folder(sink_record({}))


@pytest.mark.parametrize("path_format", ["'year", "EEE", "yy", "yyyyMMx"])
def test_a_format_that_is_not_known_is_refused(path_format: str) -> None:
    with pytest.raises(ConfigError, match=r"path\.format"):
        time_pattern(path_format)
