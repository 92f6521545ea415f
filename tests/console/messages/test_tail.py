"""Records as they come, without a broker."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import Any

import pytest

from console.messages import tally
from console.messages.filter_language import filter_of
from console.messages.lines import Forms
from console.messages.opening import Order
from console.messages.pipe import Pipe, Stopped
from console.messages.question import Mode, Question
from console.messages.tail import AGAIN_SECONDS, Tail
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.values import Record, Span
from tests.builders.messages import CLUSTER, NOW, FakeSource, places, record

FORMS = Forms()
Step = list[Record] | KafkaFailure


class Script(FakeSource):
    """Hands out what a test says, one step at a time, and then tells that it is over."""

    def __init__(self, steps: Sequence[Step], **fields: Any) -> None:
        super().__init__({0: []}, **fields)
        self.steps = list(steps)
        self.over = threading.Event()

    @contextmanager
    def reading(self, spans: Sequence[Span], *, stops_at_end: bool) -> Iterator[Any]:
        self.read += spans
        yield self

    def batches(self) -> Iterator[list[Record]]:
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, KafkaFailure):
                raise step
            yield step
        self.over.set()
        while True:
            yield []


def lines(source: Script, *, wanted: str = "", **fields: Any) -> list[dict[str, Any]]:
    async def told() -> list[dict[str, Any]]:
        pipe = Pipe(max_bytes=2**40)
        asked = Question(cluster=CLUSTER, topic="orders", mode=Mode.TAIL, **fields)
        order = Order(question=asked, places=places(0), source=source, pipe=pipe)
        tail = Tail(
            order,
            wanted=filter_of(wanted, zone=UTC, now=NOW),
            write=FORMS.line,
        )
        thread = threading.Thread(target=tail.run)
        thread.start()
        await asyncio.to_thread(source.over.wait)
        pipe.stop("left")
        await asyncio.to_thread(thread.join)
        pipe.finish()
        return [json.loads(line) for line in b"".join(await pipe.take()).splitlines()]

    return asyncio.run(told())


def offsets(told: list[dict[str, Any]]) -> list[int]:
    return [int(line["offset"]) for line in told if line["type"] == "record"]


def gaps(told: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(line["from"], line["to"]) for line in told if line["type"] == "gap"]


def goes_on(told: list[dict[str, Any]]) -> list[str]:
    return [line["next"] for line in told if line["type"] == "gap"]


def test_a_tail_begins_at_the_end_and_says_where_it_ended() -> None:
    source = Script([[record(5), record(6)], [], [record(7)]], ends={0: 5})

    told = lines(source)

    assert source.read == [Span(partition=0, start=5)]
    assert offsets(told) == [5, 6, 7]
    assert gaps(told) == []
    assert told[-1]["verdict"] == "stopped"
    assert told[-1]["next"] == {"mode": "tail", "cursor": "0:8"}


def test_a_tail_goes_on_where_it_was_left() -> None:
    source = Script([[record(3)]], ends={0: 9})

    lines(source, cursor={0: 3})

    assert source.read == [Span(partition=0, start=3)]


def test_a_tail_that_goes_on_says_what_it_does_not_show() -> None:
    made_again = lines(Script([], ends={0: 3}), cursor={0: 500})
    not_followed = lines(Script([], starts={0: 2}, ends={0: 9}), cursor={7: 1})

    assert (gaps(made_again), goes_on(made_again)) == ([("3", "500")], ["3"])
    assert (gaps(not_followed), goes_on(not_followed)) == ([("2", "9")], ["9"])


def test_offsets_without_a_record_are_a_gap() -> None:
    told = lines(Script([[record(5), record(9)]], ends={0: 5}))

    assert gaps(told) == [("6", "9")]
    assert offsets(told) == [5, 9]


def test_what_was_deleted_before_it_was_read_is_a_gap_and_the_tail_goes_on() -> None:
    source = Script(
        [[record(5)], failure("OFFSET_OUT_OF_RANGE", "orders"), [record(40)]],
        starts={0: 40},
        ends={0: 50},
    )

    told = lines(source, cursor={0: 40})

    assert [span.start for span in source.read] == [40, 40]
    assert offsets(told) == [5, 40]


def test_a_log_that_lost_its_beginning_is_followed_from_where_it_begins() -> None:
    source = Script(
        [failure("OFFSET_OUT_OF_RANGE", "orders"), [record(40)]], starts={0: 0}, ends={0: 5}
    )
    bounds = source.bounds

    def later(partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        found = bounds(partitions)
        source.starts, source.ends = {0: 40}, {0: 50}
        return found

    source.bounds = later  # type: ignore[method-assign]

    told = lines(source)

    assert gaps(told) == [("5", "40")]
    assert offsets(told) == [40]


def test_a_leader_that_refuses_again_and_again_is_asked_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Script([failure("OFFSET_OUT_OF_RANGE", "orders")] * 10, ends={0: 5})
    rests = []

    def rest(_pipe: Pipe, seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 3:
            source.over.set()
            raise Stopped("left")

    monkeypatch.setattr(Pipe, "rest", rest)

    lines(source)

    assert rests == [AGAIN_SECONDS] * 3
    assert len(source.read) == 3


def test_a_topic_that_was_made_again_is_followed_from_its_end() -> None:
    source = Script([failure("OFFSET_OUT_OF_RANGE", "orders")], ends={0: 500})
    bounds = source.bounds

    def later(partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        found = bounds(partitions)
        source.ends = {0: 3}
        return found

    source.bounds = later  # type: ignore[method-assign]

    told = lines(source)

    assert (gaps(told), goes_on(told)) == ([("3", "500")], ["3"])
    assert source.read[-1] == Span(partition=0, start=3)


def test_progress_behind_a_log_that_was_made_again_tells_its_lower_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tally, "PROGRESS_SECONDS", 0.0)
    source = Script([[record(500)], failure("OFFSET_OUT_OF_RANGE", "orders"), []], ends={0: 500})
    bounds = source.bounds

    def later(partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        found = bounds(partitions)
        source.ends = {0: 3}
        return found

    source.bounds = later  # type: ignore[method-assign]

    told = [line["partitions"] for line in lines(source) if line["type"] == "progress"]

    moved = [rows[0][:3] for rows in told if rows]
    assert moved == [[0, "501", "501"], [0, "3", "3"]]


def test_a_tail_shows_only_what_its_filter_lets_through() -> None:
    steps: list[Step] = [[record(n, value=b"%d" % n) for n in range(5, 15)]]

    told = lines(Script(steps, ends={0: 5}), wanted="value > 12")

    assert offsets(told) == [13, 14]
    assert gaps(told) == []


def test_a_browser_that_does_not_read_holds_the_reader_back_and_loses_nothing() -> None:
    async def slow() -> None:
        steps: list[Step] = [[record(n, value=b"x" * 100)] for n in range(1000)]
        source = Script(steps, ends={0: 0})
        pipe = Pipe(max_bytes=5_000)
        asked = Question(cluster=CLUSTER, topic="orders", mode=Mode.TAIL)
        order = Order(question=asked, places=places(0), source=source, pipe=pipe)
        tail = Tail(order, wanted=None, write=FORMS.line)
        thread = threading.Thread(target=tail.run)
        thread.start()
        told: list[dict[str, Any]] = []
        while len(offsets(told)) < 1000:
            taken = await pipe.take()
            assert sum(len(piece) for piece in taken) <= 5_000
            told += [json.loads(line) for line in b"".join(taken).splitlines()]
        pipe.stop("left")
        await asyncio.to_thread(thread.join)
        assert offsets(told) == list(range(1000))
        assert gaps(told) == []

    asyncio.run(slow())
