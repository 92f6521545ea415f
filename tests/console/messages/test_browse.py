"""Pages of records, without a broker."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest

from console.messages.browse import send_page
from console.messages.lines import Forms
from console.messages.opening import Order
from console.messages.places import Places
from console.messages.question import Mode, Query, Question, Window, question_of
from gateway.kafka.readers import pages
from gateway.kafka.readers.admission import admit
from gateway.kafka.readers.pages import PAGE, Bounds
from gateway.kafka.readers.pipe import Pipe
from tests.builders.messages import CLUSTER, NOW, FakeSource, places, record
from tests.fakes.readers import FakeReader

FORMS = Forms()


def question(mode: Mode = Mode.NEWEST, **fields: Any) -> Question:
    return Question(cluster=CLUSTER, topic="orders", mode=mode, **fields)


def lines(
    source: FakeSource, asked: Question, where: Places | None = None, *, bounds: Bounds = PAGE
) -> list[dict[str, Any]]:
    """What a browser gets for a question."""

    async def told() -> list[dict[str, Any]]:
        pipe = Pipe(max_bytes=2**40)
        order = Order(
            admission=admit(FakeReader(), ["orders"]),
            question=asked,
            places=where or places(*source.partitions),
            source=source,
            pipe=pipe,
        )
        send_page(order, write=FORMS.line, bounds=bounds)
        pipe.finish()
        return [json.loads(line) for line in b"".join(await pipe.take()).splitlines()]

    return asyncio.run(told())


def offsets(told: list[dict[str, Any]], *, partition: int | None = None) -> list[int]:
    return [
        int(line["offset"])
        for line in told
        if line["type"] == "record" and partition in {None, line["partition"]}
    ]


def test_the_newest_records_come_newest_first() -> None:
    source = FakeSource({0: [record(n) for n in range(1000)]})

    told = lines(source, question(limit=50))

    assert offsets(told) == list(range(999, 949, -1))
    assert told[-1]["verdict"] == "limit"
    assert told[-1]["next"] == {"mode": "newest", "cursor": "0:950"}


def test_the_progress_of_the_newest_falls_and_of_the_oldest_rises() -> None:
    source = FakeSource({0: [record(n) for n in range(1000)]})

    newest, oldest = lines(source, question(limit=50)), lines(source, question(Mode.OLDEST))

    assert newest[-2]["partitions"] == [[0, "910", "1000", 168, 168]]
    assert oldest[-2]["partitions"] == [[0, "50", "1000", 50, 50]]


def test_the_newest_of_many_partitions_are_merged_by_time() -> None:
    source = FakeSource(
        {
            0: [record(n, timestamp_ms=10 * n) for n in range(100)],
            1: [record(n, partition=1, timestamp_ms=10 * n + 5) for n in range(50)],
        }
    )

    told = lines(source, question(limit=60))

    assert offsets(told, partition=0) == list(range(99, 44, -1))
    assert offsets(told, partition=1) == list(range(49, 44, -1))


def test_pages_of_the_newest_follow_each_other_without_a_gap_or_a_repeat() -> None:
    source = FakeSource({p: [record(n, partition=p) for n in range(37)] for p in range(3)})
    seen: list[tuple[int, int]] = []
    asked = question(limit=10)

    for _ in range(20):
        told = lines(source, asked)
        seen += [(x["partition"], int(x["offset"])) for x in told if x["type"] == "record"]
        following = told[-1]["next"]
        if following is None:
            break
        asked = question_of(
            Query(f"cluster=c&topic=orders&limit=10&cursor={following['cursor']}".encode()),
            zone=UTC,
            now=NOW,
        )

    assert len(seen) == len(set(seen)) == 3 * 37
    assert told[-1]["verdict"] == "complete"


def test_many_partitions_of_large_records_take_no_more_memory_than_one_page_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "MAX_KEPT_BYTES", 10_000)
    source = FakeSource({p: [record(0, partition=p, value=b"v" * 4_000)] for p in range(20)})
    seen: list[int] = []
    asked = question()

    for _ in range(20):
        told = lines(source, asked)
        found = [line["partition"] for line in told if line["type"] == "record"]
        assert 0 < len(found) <= 2
        seen += found
        following = told[-1]["next"]
        if following is None:
            break
        assert told[-1]["verdict"] == "stopped"
        asked = question_of(
            Query(f"cluster=c&topic=orders&cursor={following['cursor']}".encode()),
            zone=UTC,
            now=NOW,
        )

    assert sorted(seen) == list(range(20))


def test_a_compacted_topic_is_not_read_from_its_beginning() -> None:
    kept = [*range(1000), 500_000, 900_000, 999_999]
    source = FakeSource({0: [record(n) for n in kept]})

    told = lines(source, question(limit=3))

    assert offsets(told) == [999_999, 900_000, 500_000]
    assert min(span.start for span in source.read) > 0


def test_a_window_that_is_full_where_others_were_empty_keeps_the_newest() -> None:
    source = FakeSource({0: [record(n) for n in range(5000)]}, ends={0: 100_000})

    told = lines(source, question(limit=50))

    assert offsets(told) == list(range(4999, 4949, -1))
    assert told[-1]["next"]["cursor"] == "0:4950"


def test_the_oldest_records_come_oldest_first_and_say_where_to_go_on() -> None:
    source = FakeSource({0: [record(n) for n in range(5, 100)]}, starts={0: 5})

    told = lines(source, question(Mode.OLDEST, limit=10))

    assert offsets(told) == list(range(5, 15))
    assert told[-1]["next"] == {"mode": "offset", "cursor": "0:15"}


def test_a_page_that_is_stopped_shows_what_it_has_so_that_the_next_one_gets_further() -> None:
    # The second partition delivers nothing before the bound is reached.
    source = FakeSource({0: [record(n) for n in range(9)], 1: [record(0, partition=1)]})

    told = lines(source, question(Mode.OLDEST), bounds=Bounds(size=1, seconds=3600))

    assert offsets(told) == [0, 1, 2]
    assert told[-1]["verdict"] == "stopped"
    assert told[-1]["next"]["cursor"] == "0:3,1:0"


def test_a_header_with_a_name_of_megabytes_is_counted_with_those_behind_it() -> None:
    headers = (("a", b"1"), ("x" * 5_000_000, b"2"), ("c", b"3"))
    source = FakeSource({0: [record(0, headers=headers)]})

    told = lines(source, question())

    [found] = [line for line in told if line["type"] == "record"]
    assert [header["name"] for header in found["headers"]] == ["a"]
    assert found["more_headers"] == 2


def test_headers_that_cannot_be_read_are_told_as_unread_and_not_as_headers() -> None:
    source = FakeSource({0: [replace(record(0), has_unread_headers=True)]})

    told = lines(source, question())

    [found] = [line for line in told if line["type"] == "record"]
    [unread] = found["headers"]
    assert unread["is_unread"] is True
    assert "not UTF-8" in unread["value"]["note"]


def test_records_from_an_offset_on_end_with_the_log() -> None:
    source = FakeSource({0: [record(n) for n in range(20)]})

    told = lines(source, question(Mode.OFFSET, start=17))

    assert offsets(told) == [17, 18, 19]
    assert told[-1]["verdict"] == "complete"
    assert told[-1]["sentence"] == "complete: 3 records, there are no more"


def test_an_offset_that_was_deleted_is_a_gap() -> None:
    source = FakeSource({0: [record(n) for n in range(10, 12)]}, starts={0: 10})

    told = lines(source, question(Mode.OFFSET, start=4))

    [gap] = [line for line in told if line["type"] == "gap"]
    assert (gap["from"], gap["to"], gap["records"]) == ("4", "10", 6)
    assert offsets(told) == [10, 11]


def test_records_from_a_time_on_are_merged_by_time() -> None:
    source = FakeSource(
        {
            0: [record(n, timestamp_ms=100 * n) for n in range(10)],
            1: [record(n, partition=1, timestamp_ms=100 * n + 50) for n in range(10)],
        }
    )

    told = lines(source, question(Mode.OLDEST, window=Window(since=700), limit=4))

    assert [(x["partition"], x["offset"]) for x in told if x["type"] == "record"] == [
        (0, "7"),
        (1, "7"),
        (0, "8"),
        (1, "8"),
    ]


def test_a_time_range_is_read_from_either_end_and_page_by_page() -> None:
    source = FakeSource(
        {p: [record(n, partition=p, timestamp_ms=100 * n) for n in range(40)] for p in range(2)}
    )
    query = "cluster=c&topic=orders&limit=7&from=1000&to=2000&mode="

    for mode in ("newest", "oldest"):
        seen: list[tuple[int, int]] = []
        more = mode
        while more:
            told = lines(source, question_of(Query(f"{query}{more}".encode()), zone=UTC, now=NOW))
            seen += [(x["partition"], int(x["offset"])) for x in told if x["type"] == "record"]
            following = told[-1]["next"]
            more = following and f"{following['mode']}&cursor={following['cursor']}"
        assert sorted(seen) == [(p, n) for p in range(2) for n in range(10, 20)]
        assert seen[0][1] == (19 if mode == "newest" else 10)
        assert told[-1]["sentence"].endswith("there are no more in this time range")


def test_an_empty_topic_is_complete() -> None:
    told = lines(FakeSource({0: [], 1: []}), question())

    assert [line["type"] for line in told] == ["start", "progress", "done"]
    assert told[-1]["verdict"] == "complete"


def test_a_partition_without_a_leader_is_said_and_the_others_are_read() -> None:
    source = FakeSource({0: [record(0)]})

    told = lines(source, question(), places(0, dark={1: "broker 2, which is away, leads it"}))

    assert [line["partition"] for line in told if line["type"] == "error"] == [1]
    assert offsets(told) == [0]
    assert told[-1]["verdict"] == "failed"
    assert "1 of 2 partitions" in told[-1]["sentence"]


def test_offsets_and_times_are_texts() -> None:
    big = 2**63 - 2
    source = FakeSource({0: [record(big, timestamp_ms=2**53 + 1)]}, starts={0: big})

    [line] = [line for line in lines(source, question()) if line["type"] == "record"]

    assert (line["offset"], line["timestamp_ms"]) == (str(big), str(2**53 + 1))


def test_a_topic_none_of_whose_brokers_is_there_is_told_partition_by_partition() -> None:
    where = Places(
        topic="orders", bootstrap="", leaders={}, dark={0: "no broker leads it", 1: "nor this"}
    )

    for mode in (Mode.NEWEST, Mode.OLDEST):
        told = lines(FakeSource({}), question(mode), where)

        assert [line["type"] for line in told] == ["start", "error", "error", "progress", "done"]
        assert told[-1]["sentence"] == "0 records; 2 of 2 partitions could not be read"
