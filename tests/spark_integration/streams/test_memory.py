"""Records go in, and what a topology writes comes out."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_integration.streams.aggregates import (
    avg_of,
    collect_of,
    count,
    count_of,
    first_of,
    last_of,
    max_of,
    min_of,
    sum_of,
)
from spark_integration.streams.building import Stream, stream
from spark_integration.streams.expressions import as_text, field
from spark_integration.streams.formats import bytes_format, json_format, text_format
from spark_integration.streams.memory import MemoryDriver
from spark_integration.streams.records import Output, Record
from spark_integration.streams.topology import Topology
from spark_integration.streams.windows import Window, hopping, session, tumbling

EVENTS = stream("events", json_format({"who": "text", "n": "long"}), grace="5s")
ALL = {
    "rows": count(),
    "there": count_of("n"),
    "total": sum_of("n"),
    "least": min_of("n"),
    "most": max_of("n"),
    "mean": avg_of("n"),
    "first": first_of("n"),
    "last": last_of("n"),
    "latest": collect_of("n", at_most=2),
}
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.integers(0, 60_000),
    ),
    max_size=12,
)
WINDOWS = st.sampled_from([tumbling("10s"), hopping("10s", slide="3s"), session("4s")])


def event(who: str | None, at_ms: int, n: int | None = 1, offset: int = 0) -> Record:
    value = json.dumps({"who": who, "n": n}).encode()
    return Record(value=value, timestamp_ms=at_ms, offset=offset)


def events(rows: Sequence[tuple[str, int | None, int]]) -> list[Record]:
    return [event(who, at_ms, n, offset) for offset, (who, n, at_ms) in enumerate(rows)]


def windowed(window: Window) -> Stream:
    return EVENTS.group("who").window(window).aggregate(**ALL)


def answers(outputs: Sequence[Output]) -> list[Any]:
    return sorted(
        ((output.key, json.loads(output.value or b"null")) for output in outputs), key=str
    )


def rows_of(outputs: Sequence[Output]) -> list[tuple[str, int, int, int]]:
    found = [json.loads(output.value or b"null") for output in outputs]
    return [(row["who"], row["window_start"], row["window_end"], row["rows"]) for row in found]


def bounded(topology: Topology, records: Sequence[Record]) -> list[Any]:
    driver = MemoryDriver(topology)
    return answers([*driver.pipe(*records), *driver.finish()])


def test_rows_are_filtered_and_transformed() -> None:
    topology = EVENTS.where(field("n") > 1).select("who", half=field("n") / 2).to("out")
    driver = MemoryDriver(topology)

    written = driver.pipe(event("ann", 0, 1), event("bob", 0, 3), event(None, 0, None))

    assert written == [Output(key=None, value=b'{"who":"bob","half":1.5}')]


def test_a_key_stays_with_its_record() -> None:
    driver = MemoryDriver(stream("a", bytes_format()).to("b"))

    assert driver.pipe(Record(key=b"k", value=None)) == [Output(key=b"k", value=None)]


def test_each_changed_group_is_emitted_once_a_batch() -> None:
    topology = EVENTS.group("who").aggregate(total=sum_of("n")).to("out")
    driver = MemoryDriver(topology)

    first = driver.pipe(event("ann", 0, 1), event("bob", 0, 2), event("ann", 0, 3))
    second = driver.pipe(event("ann", 0, 4))

    assert first == [
        Output(key=b"ann", value=b'{"who":"ann","total":4}'),
        Output(key=b"bob", value=b'{"who":"bob","total":2}'),
    ]
    assert second == [Output(key=b"ann", value=b'{"who":"ann","total":8}')]
    assert driver.finish() == []


def test_window_is_emitted_once_when_it_has_closed() -> None:
    driver = MemoryDriver(windowed(tumbling("10s")).final().to("out"))

    assert driver.pipe(event("ann", 1000), event("ann", 14_999)) == []
    assert rows_of(driver.pipe(event("bob", 15_000))) == [("ann", 0, 10_000, 1)]
    assert rows_of(driver.finish()) == [("ann", 10_000, 20_000, 1), ("bob", 10_000, 20_000, 1)]


def test_the_key_of_a_window_is_an_object() -> None:
    driver = MemoryDriver(windowed(tumbling("10s")).to("out"))

    (output,) = driver.pipe(event("ann", 1000))

    assert output.key == b'{"who":"ann","window_start":0,"window_end":10000}'


def test_a_row_after_the_grace_is_late_and_one_within_is_not() -> None:
    driver = MemoryDriver(windowed(tumbling("10s")).to("out"))
    driver.pipe(event("ann", 15_000))

    written = driver.pipe(event("ann", 9999), event("ann", 10_000))

    assert rows_of(written) == [("ann", 10_000, 20_000, 2)]
    assert driver.counts.late == 1


def test_sessions_that_touch_become_one() -> None:
    driver = MemoryDriver(windowed(session("4s")).final().to("out"))
    driver.pipe(event("ann", 0), event("ann", 8000), event("bob", 8001))

    driver.pipe(event("ann", 4000))

    assert rows_of(driver.finish()) == [("ann", 0, 12_000, 3), ("bob", 8001, 12_001, 1)]


def test_records_without_a_time_or_a_value_are_counted() -> None:
    timed = stream("a", json_format({"at": "time"}), time="at").select(all=as_text(True))
    driver = MemoryDriver(timed.group("all").window(tumbling("1s")).aggregate(n=count()).to("b"))

    driver.pipe(Record(value=b"{}"), Record(value=None), Record(value=b"?"))

    assert (driver.counts.records, driver.counts.timeless) == (3, 1)
    assert (driver.counts.empty, driver.counts.bad) == (1, 1)
    assert driver.bad_records == [Record(value=b"?")]


def test_times_of_windows_survive_a_select_without_them() -> None:
    timed = stream("a", json_format({"at": "time", "n": "long"}), time="at").select("n")
    driver = MemoryDriver(timed.group("n").window(tumbling("1s")).aggregate(m=count()).to("b"))

    (output,) = driver.pipe(Record(value=b'{"at":"1970-01-01T00:00:05.5Z","n":1}'))

    assert output.value == b'{"n":1,"window_start":5000,"window_end":6000,"m":1}'


def test_times_in_a_key_are_grouped_at_their_precision() -> None:
    topology = stream("a", json_format({"t": "time"})).group("t").aggregate(n=count()).to("b")
    times = ["1969-12-31T23:59:59.9985Z", "1969-12-31T23:59:59.998001Z", "1970-01-01T00:00:00Z"]
    records = [Record(value=json.dumps({"t": time}).encode()) for time in times]

    written = MemoryDriver(topology).pipe(*records)

    assert [output.key for output in written] == [b'{"t":-2}', b'{"t":0}']


def test_first_and_last_go_by_time_then_by_offset() -> None:
    topology = EVENTS.group("who").aggregate(first=first_of("n"), last=last_of("n")).to("out")

    records = [event("a", 5, 1, 1), event("a", 5, 2, 2), event("a", 3, None, 3)]

    assert bounded(topology, records) == [(b"a", {"who": "a", "first": None, "last": 2})]


def test_a_sum_that_leaves_64_bits_on_its_way_comes_back() -> None:
    topology = EVENTS.group("who").aggregate(total=sum_of("n")).to("out")
    top = 2**63 - 1

    records = [event("a", 0, top), event("a", 0, top), event("a", 0, -top), event("b", 0, top)]

    assert [row["total"] for _, row in bounded(topology, records)] == [top, top]
    assert bounded(topology, records[:2])[0][1]["total"] is None


@given(rows=ROWS, window=WINDOWS, seed=st.randoms())
def test_aggregates_do_not_depend_on_the_order_of_records(
    rows: list[tuple[str, int | None, int]], window: Window, seed: Any
) -> None:
    topology = windowed(window).final().to("out")
    records = events(rows)
    mixed = list(records)
    seed.shuffle(mixed)

    assert bounded(topology, mixed) == bounded(topology, records)


@given(rows=ROWS, window=WINDOWS, cut=st.integers(0, 12))
def test_batches_do_not_matter_while_nothing_is_late(
    rows: list[tuple[str, int | None, int]], window: Window, cut: int
) -> None:
    topology = windowed(window).final().to("out")
    records = sorted(events(rows), key=lambda record: record.timestamp_ms)
    driver = MemoryDriver(topology)

    written = [*driver.pipe(*records[:cut]), *driver.pipe(*records[cut:]), *driver.finish()]

    assert driver.counts.late == 0
    assert answers(written) == bounded(topology, records)


@given(rows=ROWS, slide=st.sampled_from([1, 2, 5, 10]))
def test_every_row_is_in_as_many_windows_as_overlap(
    rows: list[tuple[str, int | None, int]], slide: int
) -> None:
    window = hopping("10s", slide=f"{slide}s")

    written = bounded(windowed(window).final().to("out"), events(rows))

    assert sum(row["rows"] for _, row in written) == len(rows) * 10 // slide


@given(batches=st.lists(ROWS, max_size=4), window=WINDOWS)
def test_every_row_is_emitted_once_or_counted_as_late(
    batches: list[list[tuple[str, int | None, int]]], window: Window
) -> None:
    driver = MemoryDriver(windowed(window).final().to("out"))

    written = [output for rows in batches for output in driver.pipe(*events(rows))]
    written += driver.finish()

    keys = [output.key for output in written]
    told = sum(json.loads(output.value or b"null")["rows"] for output in written)
    copies = 10 / 3 if window == hopping("10s", slide="3s") else 1
    rows = sum(len(rows) for rows in batches)
    assert len(set(keys)) == len(keys)
    assert int(rows * copies) - rows <= told + driver.counts.late <= rows * (int(copies) + 1)
    if copies == 1:
        assert told + driver.counts.late == rows


@pytest.mark.parametrize("value", [b"ann", "änn".encode()])
def test_texts_are_grouped_as_they_are(value: bytes) -> None:
    topology = stream("a", text_format()).group("value").aggregate(n=count()).to("b")

    (written,) = MemoryDriver(topology).pipe(Record(value=value))

    assert written.key == value
