"""Bad records come to the dead letters in parts of bounded size."""

from collections.abc import Callable

import pytest

from connectors.plugins.spark import bad_records
from connectors.plugins.spark.bad_records import divided, parts
from connectors.plugins.spark.batches import Span
from connectors.sdk.records import TopicPartition

Spans = tuple[Span, ...]
A, B = (TopicPartition(topic="orders", partition=number) for number in range(2))


def span(place: TopicPartition, start: int, end: int) -> Span:
    return Span(place=place, start=start, end=end)


def offsets(spans: Spans) -> list[tuple[TopicPartition, int]]:
    return [(one.place, at) for one in spans for at in range(one.start, one.end)]


def weighing(sizes: dict[tuple[TopicPartition, int], int]) -> Callable[[Spans], int]:
    return lambda spans: sum(sizes.get(at, 0) for at in offsets(spans))


@pytest.mark.parametrize("count", [2, 3, 7, 17])
def test_parts_hold_every_offset_once_and_about_as_many(count: int) -> None:
    whole = (span(A, 10, 22), span(B, 0, 5))

    found = list(divided(whole, count))

    assert [at for part in found for at in offsets(part)] == offsets(whole)
    assert {len(offsets(part)) for part in found} <= {17 // count, 17 // count + 1}


def test_few_bad_records_come_at_once_and_none_not_at_all() -> None:
    whole = (span(A, 0, 1000),)

    assert list(parts(whole, weighing({(A, 7): 5}))) == [whole]
    assert list(parts(whole, weighing({}))) == []


def test_many_bad_records_in_a_heap_come_in_parts_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bad_records, "MAX_BYTES", 100)
    # 18 of them are larger than a part by itself.
    sizes = {(A, at): 30 for at in range(500, 600)} | {(B, at): 180 for at in range(18)}
    weigh = weighing(sizes)

    found = list(parts((span(A, 0, 1000), span(B, 0, 20)), weigh))

    assert all(weigh(part) <= 100 or len(offsets(part)) == 1 for part in found)
    told = [at for part in found for at in offsets(part) if at in sizes]
    assert sorted(told) == sorted(sizes)
