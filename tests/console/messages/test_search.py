"""Searches over partitions and brokers, without a broker."""

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC
from functools import partial
from typing import Any

import pytest

from brokers.inspection.client import InspectionFailed
from console.messages.filter_language import filter_of
from console.messages.lines import Forms
from console.messages.opening import Order
from console.messages.places import Places
from console.messages.question import Mode, Question
from console.messages.search import send_hits
from gateway.kafka.readers.admission import admit
from gateway.kafka.readers.pipe import Pipe, Stopped
from gateway.kafka.readers.slots import Slots
from gateway.kafka.values import Record
from tests.builders.messages import CLUSTER, NOW, FakeSource, places, record
from tests.fakes.readers import FakeReader
from tests.fakes.searching_brokers import SearchingBrokers

FORMS = Forms()
Verdicts = dict[int, Mapping[str, Any]]


def search_of(
    held: dict[int, list[Record]],
    brokers: SearchingBrokers,
    pipe: Pipe,
    *,
    where: Places | None = None,
    slots: Slots | None = None,
    **fields: Any,
) -> Callable[[], None]:
    asked = Question(cluster=CLUSTER, topic="orders", **{"filter": "needle", **fields})
    wanted = filter_of(asked.filter, zone=UTC, now=NOW)
    assert wanted is not None
    order = Order(
        admission=admit(FakeReader(), ["orders"]),
        question=asked,
        places=where or places(*held, port=1),
        source=FakeSource(held),
        pipe=pipe,
    )
    return partial(
        send_hits,
        order,
        wanted=wanted,
        ask=brokers,
        slots=slots or Slots(),
        write=FORMS.line,
    )


def lines(
    held: dict[int, list[Record]], brokers: SearchingBrokers | None = None, **fields: Any
) -> list[dict[str, Any]]:
    async def told() -> list[dict[str, Any]]:
        pipe = Pipe(max_bytes=2**40)
        search_of(held, brokers or SearchingBrokers(held), pipe, **fields)()
        pipe.finish()
        return [json.loads(line) for line in b"".join(await pipe.take()).splitlines()]

    return asyncio.run(told())


def hay(size: int, *needles: int, partition: int = 0, step: int = 1) -> list[Record]:
    return [
        record(n, partition=partition, value=b"a needle" if n in needles else b"hay")
        for n in sorted({*range(0, size, step), *needles})
    ]


def found(told: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(x["partition"], int(x["offset"])) for x in told if x["type"] == "record"]


def test_every_needle_is_found_and_the_verdict_counts_what_was_looked_at() -> None:
    held = {p: hay(100, 7, 70 + p, partition=p) for p in range(3)}

    told = lines(held, mode=Mode.OLDEST)

    assert sorted(found(told)) == [(p, n) for p in range(3) for n in (7, 70 + p)]
    assert told[-1]["verdict"] == "complete"
    assert told[-1]["sentence"] == "complete: 6 hits in 300 records"
    assert told[-1]["next"] is None
    assert told[0]["filter"] == '(key contains "needle" or value contains "needle")'


def test_the_newest_hits_are_looked_for_from_the_end() -> None:
    held = {0: hay(150_000, 3, 60_000, 149_999, step=100)}
    brokers = SearchingBrokers(held)

    told = lines(held, brokers, limit=2)

    assert found(told) == [(0, 149_999), (0, 60_000)]
    assert told[-1]["verdict"] == "limit"
    assert told[-1]["next"] == {"mode": "newest", "cursor": "0:60000"}
    assert brokers.asked[0]["from"] == {"offset": 140_000}


def test_the_newest_of_more_hits_than_a_broker_answers_are_the_newest() -> None:
    held = {0: [record(n, value=b"needle") for n in range(25_000)]}

    told = lines(held, limit=3)

    assert found(told) == [(0, 24_999), (0, 24_998), (0, 24_997)]


def test_a_stretch_that_has_grown_is_short_again_where_hits_are_dense() -> None:
    dense = range(100_000, 100_010)
    held = {0: hay(120_001, *dense, step=1_000), 1: hay(1, partition=1)}
    brokers = SearchingBrokers(held)

    told = lines(held, brokers, limit=4)

    assert found(told) == [(0, n) for n in reversed(range(100_006, 100_010))]
    stretches = [
        (question["from"]["offset"], question["to"]["offset"])
        for question in brokers.asked
        if question["partition"] == 0
    ]
    assert stretches == [(110_001, 120_001), (10_001, 110_001), (90_008, 100_008)]


def test_records_that_are_looked_at_twice_are_counted_once() -> None:
    held = {p: hay(100, *range(0, 100, 10), partition=p) for p in range(2)}

    told = lines(held, limit=20)

    assert told[-1]["sentence"] == "complete: 20 hits in 200 records"


def test_a_search_of_the_newest_that_reaches_the_beginning_is_complete() -> None:
    told = lines({0: hay(30_000, 5, step=100)}, limit=10)

    assert found(told) == [(0, 5)]
    assert told[-1]["sentence"] == "complete: 1 hit in 301 records"


def test_as_many_hits_as_were_asked_for_end_the_search_and_say_where_to_go_on() -> None:
    held = {0: hay(100, *range(0, 100, 2))}

    told = lines(held, mode=Mode.OLDEST, limit=10)
    again = lines(held, mode=Mode.OFFSET, limit=100, cursor={0: 19})

    assert found(told) == [(0, n) for n in range(0, 20, 2)]
    assert told[-1]["verdict"] == "limit"
    assert told[-1]["next"] == {"mode": "offset", "cursor": "0:19"}
    assert told[-1]["sentence"] == "10 hits in 19 records, as many as were asked for"
    assert found(again) == [(0, n) for n in range(20, 100, 2)]


@pytest.mark.parametrize("mode", [Mode.NEWEST, Mode.OLDEST])
def test_no_partition_fills_the_answer_before_the_others_had_a_turn(mode: Mode) -> None:
    held = {p: hay(100, *range(100), partition=p) for p in range(4)}

    told = lines(held, mode=mode, limit=40)

    hits = Counter(partition for partition, _ in found(told))
    assert hits == {0: 10, 1: 10, 2: 10, 3: 10}
    assert re.fullmatch(r"40 hits in (4\d|[5-9]\d|[1-4]\d\d) records, .*", told[-1]["sentence"])
    expected = range(90, 100) if mode is Mode.NEWEST else range(10)
    assert {offset for _, offset in found(told)} == set(expected)


@pytest.mark.parametrize("mode", [Mode.NEWEST, Mode.OLDEST])
def test_a_search_in_turns_and_pages_finds_every_hit_once(mode: Mode) -> None:
    held = {p: hay(60, *range(0, 60, 1 + p), partition=p) for p in range(3)}
    hits: list[tuple[int, int]] = []
    fields: dict[str, Any] = {"mode": mode}

    while fields:
        told = lines(held, limit=25, **fields)
        hits += found(told)
        following = told[-1]["next"]
        pairs = following["cursor"].split(",") if following else []
        cursor = {int(p): int(n) for p, _, n in (pair.partition(":") for pair in pairs)}
        fields = {"mode": Mode(following["mode"]), "cursor": cursor} if following else {}

    assert sorted(hits) == [(p, n) for p in range(3) for n in range(0, 60, 1 + p)]


def test_partitions_that_cannot_match_are_not_searched() -> None:
    held = {p: hay(10, 1, partition=p) for p in range(3)}
    brokers = SearchingBrokers(held)

    told = lines(held, brokers, filter="partition = 2 and needle", mode=Mode.OLDEST)

    assert found(told) == [(2, 1)]
    assert [asked["partition"] for asked in brokers.asked] == [2]


def test_what_is_older_than_every_hit_is_not_searched() -> None:
    held = {0: hay(100, 10, 90)}
    brokers = SearchingBrokers(held)

    told = lines(held, brokers, filter="needle and timestamp >= 50", mode=Mode.OLDEST)

    assert found(told) == [(0, 90)]
    assert brokers.asked[0]["from"] == {"offset": 50}


def test_two_partitions_of_a_broker_are_searched_at_a_time() -> None:
    held = {p: hay(10, 1, partition=p) for p in range(9)}
    brokers = SearchingBrokers(held)

    told = lines(held, brokers, mode=Mode.OLDEST)

    assert len(found(told)) == 9
    assert brokers.most_running <= 2


def test_a_busy_broker_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.kafka.readers.hits.BUSY_SECONDS", 0.001)
    held = {0: hay(10, 1)}
    busy = InspectionFailed("two searches are running", status=429)
    brokers = SearchingBrokers(held, refusals=[busy, busy])

    told = lines(held, brokers, mode=Mode.OLDEST)

    assert told[-1]["verdict"] == "complete"
    assert len(brokers.asked) == 3


@pytest.mark.parametrize(
    ("status", "next_step"),
    [(0, "inspection port of broker 1"), (404, "its leader has moved"), (503, "without one")],
)
def test_a_partition_that_fails_is_said_and_the_others_are_searched(
    status: int, next_step: str
) -> None:
    held = {p: hay(10, 1, partition=p) for p in range(2)}
    brokers = SearchingBrokers(held, refusals=[InspectionFailed("no", status=status)])

    told = lines(held, brokers, mode=Mode.OLDEST)

    [error] = [line for line in told if line["type"] == "error"]
    assert next_step in error["next_step"]
    assert len(found(told)) == 1
    assert told[-1]["verdict"] == "failed"
    assert told[-1]["sentence"] == "1 hit in 10 records; 1 of 2 partitions could not be searched"


def test_a_search_that_a_broker_ends_says_how_far_it_came() -> None:
    held = {0: hay(100, 10)}
    verdicts: Verdicts = {0: {"verdict": "stopped", "next_offset": 41}}

    told = lines(held, SearchingBrokers(held, verdicts=verdicts), mode=Mode.OLDEST)

    assert told[-1]["verdict"] == "stopped"
    assert told[-1]["sentence"].startswith("stopped at 41 %: 1 hit in 100 records; a broker ends")
    assert told[-1]["next"] == {"mode": "offset", "cursor": "0:41"}


def test_what_cannot_be_read_is_a_gap_and_no_complete_search() -> None:
    held = {0: hay(100, 10)}
    verdicts: Verdicts = {0: {"verdict": "damaged", "damaged": [(20, 30)], "removed": [(40, 45)]}}

    told = lines(held, SearchingBrokers(held, verdicts=verdicts), mode=Mode.OLDEST)

    gaps = [(x["from"], x["to"], x["reason"]) for x in told if x["type"] == "gap"]
    assert [gap[:2] for gap in gaps] == [("20", "30"), ("40", "45")]
    assert "damaged" in gaps[0][2]
    assert told[-1]["verdict"] == "failed"
    assert told[-1]["sentence"] == "1 hit in 100 records; 15 offsets could not be read"


def test_who_leaves_ends_all_searches_at_once() -> None:
    async def left() -> None:
        held = {p: hay(10, 1, partition=p) for p in range(4)}
        brokers = SearchingBrokers(held, holds=True)
        pipe = Pipe()
        search = search_of(held, brokers, pipe, mode=Mode.OLDEST)
        raised: list[BaseException] = []

        def run() -> None:
            try:
                search()
            except Stopped as stopped:
                raised.append(stopped)

        thread = threading.Thread(target=run)
        thread.start()
        await asyncio.to_thread(brokers.begun.wait)
        pipe.stop("left")
        await asyncio.to_thread(thread.join)
        assert [str(one) for one in raised] == ["left"]
        assert brokers.running == 0
        assert len(brokers.asked) <= 2

    asyncio.run(left())


def test_who_waits_for_a_place_is_told_and_let_in_when_one_is_free() -> None:
    async def waited() -> list[dict[str, Any]]:
        held = {0: hay(10, 1)}
        slots, pipe = Slots(per_broker=1), Pipe()
        search = search_of(held, SearchingBrokers(held), pipe, slots=slots, mode=Mode.OLDEST)
        thread = threading.Thread(target=search)
        told: list[dict[str, Any]] = []
        with slots.place("127.0.0.1:1", waits=lambda _: None):
            thread.start()
            while not any(line.get("waiting") for line in told):
                told += [json.loads(x) for x in b"".join(await pipe.take()).splitlines()]
        await asyncio.to_thread(thread.join)
        pipe.finish()
        return told + [json.loads(x) for x in b"".join(await pipe.take()).splitlines()]

    told = asyncio.run(waited())

    waiting = [line["waiting"] for line in told if line["type"] == "progress"]
    assert waiting[0] == {"0": "1 in front"}
    assert waiting[-1] == {}
    assert told[-1]["verdict"] == "complete"


def test_a_large_value_is_shown_cut_with_its_size() -> None:
    held = {0: [record(0, value=b"needle" + b"x" * 200_000)]}

    [line] = [x for x in lines(held, mode=Mode.OLDEST) if x["type"] == "record"]

    assert line["value"]["is_cut"]
    assert line["value"]["bytes"] == line["size"] == 200_006
    assert len(line["value"]["text"]) == 16_384
