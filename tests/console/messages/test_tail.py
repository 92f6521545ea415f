"""Records as they come, without a broker."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any

import pytest

from console.messages.filter_language import filter_of
from console.messages.lines import Forms
from console.messages.opening import Order
from console.messages.question import Mode, Question
from console.messages.tail import AWAY_SECONDS, Tail
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.readers.admission import Admission, admit
from gateway.kafka.readers.pipe import Pipe
from gateway.kafka.readers.values import End, Gap, GapReason, News
from gateway.kafka.values import Place, Position, Record
from tests.builders.messages import CLUSTER, NOW, FakeSource, places, record
from tests.fakes.readers import FakeReader

FORMS = Forms()
ADMITTED = admit(FakeReader(), ["orders"])
ORDERS = Place(topic="orders", partition=0)


class Script:
    """An engine and its reading: returns what a test says, one step at a time, and then stops."""

    def __init__(self, steps: Sequence[Sequence[News]], *, stop: Callable[[], None]) -> None:
        self._steps = list(steps)
        self._stop = stop
        self.starts: dict[Place, int] = {}
        self.positions: dict[Place, int] = {}
        self.is_closed = False
        self.failure: KafkaFailure | None = None

    async def open(self, admission: Admission, starts: Mapping[Place, Position]) -> Any:
        admission.require({place.topic for place in starts})
        self.starts = {place: at.value for place, at in starts.items()}
        self.positions = dict(self.starts)
        return self

    @property
    def is_over(self) -> bool:
        return not self.positions

    async def take(self, *, max_records: int, max_bytes: int, wait_s: float) -> Sequence[News]:
        await asyncio.sleep(0)
        if not self._steps:
            self._stop()
            return []
        news = self._steps.pop(0)
        for one in news:
            if isinstance(one, Record):
                self.positions[ORDERS] = one.offset + 1
            elif isinstance(one, Gap):
                self.positions[ORDERS] = one.next
            elif isinstance(one, End):
                del self.positions[ORDERS]
        return news

    def require_answers(self, within_s: float) -> None:
        assert within_s == AWAY_SECONDS
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        self.is_closed = True


async def followed(
    steps: Sequence[Sequence[News]],
    pipe: Pipe,
    *,
    source: FakeSource | None = None,
    wanted: str = "",
    failed: KafkaFailure | None = None,
    **fields: Any,
) -> Script:
    script = Script(steps, stop=lambda: pipe.stop("left"))
    script.failure = failed
    asked = Question(cluster=CLUSTER, topic="orders", mode=Mode.TAIL, **fields)
    order = Order(
        admission=ADMITTED,
        question=asked,
        places=places(0),
        source=source or FakeSource({0: []}, ends={0: 5}),
        pipe=pipe,
    )
    tail = Tail(ADMITTED, pipe, wanted=filter_of(wanted, zone=UTC, now=NOW), write=FORMS.line)
    await asyncio.to_thread(tail.begin, order)
    await tail.follow("orders", script)
    return script


def lines(*steps: Sequence[News], **fields: Any) -> list[dict[str, Any]]:
    """Return the lines that a browser gets until it leaves."""

    async def read() -> list[dict[str, Any]]:
        pipe = Pipe(max_bytes=2**40)
        script = await followed(steps, pipe, **fields)
        assert script.is_closed
        pipe.finish()
        return [json.loads(line) for line in b"".join(await pipe.take()).splitlines()]

    return asyncio.run(read())


def gap(start: int, behind: int, reason: GapReason) -> Gap:
    return Gap(place=ORDERS, start=start, next=behind, reason=reason)


def offsets(found: list[dict[str, Any]]) -> list[int]:
    return [int(line["offset"]) for line in found if line["type"] == "record"]


def gaps(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(one["from"], one["to"], one["next"]) for one in found if one["type"] == "gap"]


def test_tail_begins_at_the_end_and_reports_where_it_ended() -> None:
    found = lines([record(5), record(6)], [], [record(7)])

    assert found[0]["partitions"][0]["from"] == "5"
    assert offsets(found) == [5, 6, 7]
    assert gaps(found) == []
    assert found[-1]["sentence"] == "stopped: left"
    assert found[-1]["next"] == {"mode": "tail", "cursor": "0:8"}


def test_tail_resumes_at_its_cursor() -> None:
    async def read() -> None:
        source = FakeSource({0: []}, ends={0: 9})
        script = await followed([[record(3)]], Pipe(), source=source, cursor={0: 3})
        assert script.starts == {ORDERS: 3}

    asyncio.run(read())


def test_resumed_tail_reports_what_it_does_not_show() -> None:
    recreated = lines(source=FakeSource({0: []}, ends={0: 3}), cursor={0: 500})
    not_followed = FakeSource({0: []}, starts={0: 2}, ends={0: 9})

    assert gaps(recreated) == [("3", "500", "3")]
    assert gaps(lines(source=not_followed, cursor={7: 1})) == [("2", "9", "9")]


def test_gaps_name_the_offsets_and_where_the_tail_continues() -> None:
    found = lines(
        [record(5), gap(6, 9, GapReason.NO_RECORD), record(9)],
        [gap(10, 40, GapReason.DELETED), gap(40, 3, GapReason.CUT)],
    )

    assert gaps(found) == [("6", "9", "9"), ("10", "40", "40"), ("3", "40", "3")]
    assert offsets(found) == [5, 9]
    assert found[-1]["next"]["cursor"] == "0:3"


def test_progress_of_a_truncated_log_has_its_lower_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.kafka.readers.progress.PROGRESS_SECONDS", 0.0)

    found = lines([record(5)], [gap(6, 3, GapReason.CUT)])

    moved = [one["partitions"] for one in found if one["type"] == "progress"]
    assert [rows[0][:3] for rows in moved if rows] == [[0, "6", "6"], [0, "3", "3"]]


def test_tail_of_a_deleted_topic_fails_with_the_reason() -> None:
    end = End(place=ORDERS, name="UNKNOWN_TOPIC_OR_PARTITION", message="the topic was deleted")

    found = lines([record(5), end])

    [error] = [line for line in found if line["type"] == "error"]
    assert (error["partition"], error["message"]) == (0, "the topic was deleted")
    assert (found[-1]["verdict"], found[-1]["next"]) == ("failed", None)


def test_tail_of_a_cluster_without_an_answer_fails() -> None:
    with pytest.raises(KafkaFailure, match="BROKER_NOT_AVAILABLE"):
        lines([], failed=failure("BROKER_NOT_AVAILABLE", "127.0.0.1:9092"))


def test_filter_hides_other_records() -> None:
    found = lines([record(n, value=b"%d" % n) for n in range(5, 15)], wanted="value > 12")

    assert offsets(found) == [13, 14]
    assert gaps(found) == []


def test_slow_browser_holds_the_tail_back_and_loses_nothing() -> None:
    async def read() -> None:
        pipe = Pipe(max_bytes=5_000)
        steps = [[record(n, value=b"x" * 100)] for n in range(5, 1_005)]
        tail = asyncio.create_task(followed(steps, pipe))
        found: list[dict[str, Any]] = []
        while len(offsets(found)) < 1_000:
            taken = await pipe.take()
            assert sum(len(piece) for piece in taken) <= 5_000
            found += [json.loads(line) for line in b"".join(taken).splitlines()]
        await tail
        assert offsets(found) == list(range(5, 1_005))

    asyncio.run(read())
