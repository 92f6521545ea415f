"""What a job over 10,000 partitions costs beside its records grows with them, and no faster."""

import gc
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from connectors.plugins.spark import bad_records, batch_size, batches, former_topics
from connectors.sdk.records import TopicPartition
from spark_integration.datasource.admission import admitted
from spark_integration.datasource.offsets import (
    from_json,
    grouped,
    places_of,
    ranges,
    require_all,
    require_same,
    split,
    to_json,
)
from spark_integration.datasource.options import SourceOptions, parse_options
from spark_integration.datasource.wire.messages import TopicFacts
from tests.extras import requires

pytestmark = [requires("spark"), pytest.mark.alone, pytest.mark.slow]

FEW: Final = 1_000
MANY: Final = 10_000
# Of ten times the partitions; what is quadratic takes a hundred times as long.
MAX_RATIO: Final = 35.0
MAX_S: Final = 3.0


def least_s(work: Callable[[], None]) -> float:
    """Return the CPU of the fastest of three runs."""
    found = []
    # The collector would look through what other tests have left, once the many are at work.
    gc.collect()
    gc.freeze()
    try:
        for _ in range(3):
            began = time.process_time()
            work()
            found.append(time.process_time() - began)
    finally:
        gc.unfreeze()
    return min(found)


def job(count: int) -> Callable[[], None]:
    """Return all that a job does with its state around one batch."""
    places = [TopicPartition(topic="many", partition=number) for number in range(count)]
    offsets = dict.fromkeys(places, 100)
    before = replace(batches.new_state(), next=offsets, told=offsets, topics={"many": "x"})
    bounds = {place: (0, 200 + place.partition) for place in places}

    def work() -> None:
        adopted, _ = batches.adopt(before, offsets)
        planned, _ = batches.plan(adopted, bounds, most=50 * count, at_end=False)
        assert planned.batch is not None
        batches.trimmed(planned.batch, bounds)
        batches.load(batches.dump(planned))
        former_topics.leave(planned, {"many": "y"})
        batch_size.shrunk(planned, "")
        list(bad_records.divided(planned.batch.spans, bad_records.MAX_PARTS))
        batches.is_told(batches.done(planned))

    return work


def source(count: int) -> Callable[[], None]:
    """Return all that the driver of a source does between two answers of the cluster."""
    numbers = range(count)
    given = {
        "kafka.bootstrap.servers": "a:1",
        "assign": json.dumps({"many": [*numbers]}),
        "startingOffsets": json.dumps({"many": {str(number): 0 for number in numbers}}),
        "endingOffsets": json.dumps({"many": {str(number): 9 for number in numbers}}),
    }
    facts = TopicFacts(
        name="many",
        error_code=0,
        topic_id=bytes(16),
        is_internal=False,
        leaders=dict.fromkeys(numbers, 1),
    )

    def work() -> None:
        options: SourceOptions = parse_options(given, is_stream=False)
        places = places_of(options.selection, {"many": facts})
        require_all(options.selection, places)
        require_same(options.starting, places)
        start, end = dict.fromkeys(places, 0), dict.fromkeys(places, 9)
        found = split(ranges(start, end, {"many": facts}), min_partitions=None, max_records=None)
        assert len(grouped(found)) <= 10
        admitted(start, from_json(to_json(end)), count)

    return work


@pytest.mark.parametrize("make", [job, source])
def test_ten_times_the_partitions_take_about_ten_times_as_long(
    make: Callable[[int], Callable[[], None]], report: Callable[[str], None]
) -> None:
    few_s, many_s = least_s(make(FEW)), least_s(make(MANY))

    report(f"{make.__name__}: {MANY} partitions take {many_s:.3f} s, {FEW} take {few_s:.4f} s")
    assert many_s < MAX_S
    assert many_s / few_s < MAX_RATIO
