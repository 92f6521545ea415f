"""Each record is in one file once, whoever dies where."""

import gzip
import io
import json
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pytest

from connectors.plugins.s3 import chunks
from connectors.plugins.s3.connector import S3Sink
from connectors.plugins.s3.store import Store
from connectors.plugins.s3.task import KEPT, S3Task
from connectors.sdk import contract, outgoing
from connectors.sdk.errors import ConnectorError, RecordError, RetriableError
from connectors.sdk.exchanges import Connection
from connectors.sdk.records import RecordPlace, SinkRecord, TopicPartition
from connectors.sdk.schemas import INT64, STRING, Field, Schema, Struct, Type
from connectors.sdk.testing import MemorySinkContext, run_sink, sink_record
from tests.connectors.plugins.s3.bucket import Bucket, a_bucket, parsed
from tests.extras import requires

ORDERS = TopicPartition(topic="orders", partition=0)
ROW = Schema(
    type=Type.STRUCT,
    name="row",
    fields=(Field(name="id", schema=INT64), Field(name="name", schema=STRING)),
)


@pytest.fixture(autouse=True)
def loopback_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(outgoing.SETTING, "127.0.0.1")


@pytest.fixture
def bucket(unique: Callable[[str], str]) -> Iterator[Bucket]:
    with a_bucket(unique("bucket").lower().replace("_", "-")) as made:
        yield made


class Clock:
    def __init__(self) -> None:
        self.now = 1_795_089_600.0

    def __call__(self) -> float:
        return self.now


def records(start: int, end: int, *, partition: int = 0) -> list[SinkRecord]:
    return [
        sink_record({"n": number}, partition=partition, offset=number, timestamp_ms=number * 1000)
        for number in range(start, end)
    ]


def put(
    bucket: Bucket,
    batches: Sequence[list[SinkRecord]],
    context: MemorySinkContext | None = None,
    /,
    **config: str,
) -> Any:
    """Run one slice; return the offsets up to which it is durable."""
    made = context or MemorySinkContext()
    try:
        return run_sink(S3Sink(), parsed(bucket.config(**config)), made, batches)
    finally:
        if context is None:
            made.close()


def lines(bucket: Bucket) -> list[int]:
    """Return the numbers of all records in the bucket, in the order of files and lines."""
    texts = [bucket.read(name) for name in bucket.names()]
    return [json.loads(line)["n"] for text in texts for line in text.splitlines()]


def test_full_files_are_written_and_the_rest_waits(bucket: Bucket) -> None:
    durable = put(bucket, [records(0, 25)])

    assert bucket.names() == [
        "topics/orders/partition=0/orders+0+0000000000.json",
        "topics/orders/partition=0/orders+0+0000000010.json",
    ]
    assert bucket.read(bucket.names()[0]) == b"".join(b'{"n":%d}\n' % n for n in range(10))
    assert durable == {ORDERS: 20}


def test_what_waits_is_kept_between_slices(bucket: Bucket) -> None:
    context = MemorySinkContext()

    first = put(bucket, [records(0, 5)], context)
    # All are given, and those that the task has already are left out by what `open` returns.
    second = put(bucket, [records(0, 12)], context)
    context.close()

    assert (first, second) == ({ORDERS: 0}, {ORDERS: 10})
    assert lines(bucket) == list(range(10))


def test_a_lost_process_reads_again_what_no_file_holds(bucket: Bucket) -> None:
    put(bucket, [records(0, 15)])
    durable = put(bucket, [records(10, 22)])

    assert lines(bucket) == list(range(20))
    assert durable == {ORDERS: 20}


def test_a_batch_that_is_given_again_is_written_once(bucket: Bucket) -> None:
    put(bucket, [records(0, 15), records(0, 15), records(5, 20)])

    assert lines(bucket) == list(range(20))


def test_what_was_written_and_not_committed_is_not_written_again(bucket: Bucket) -> None:
    put(bucket, [records(0, 20)])
    before = [bucket.client.head_object(Bucket=bucket.name, Key=n) for n in bucket.names()]
    durable = put(bucket, [records(0, 20)])
    after = [bucket.client.head_object(Bucket=bucket.name, Key=n) for n in bucket.names()]

    assert durable == {ORDERS: 20}
    assert [one["LastModified"] for one in before] == [one["LastModified"] for one in after]
    assert lines(bucket) == list(range(20))


def test_files_end_by_the_clock_where_that_is_asked_for(bucket: Bucket) -> None:
    clock, context = Clock(), MemorySinkContext()
    task = S3Task(clock=clock)
    task.start(context, parsed(bucket.config(rotate_schedule_interval_ms="60000")))
    task.open([ORDERS])
    task.put(records(0, 3))

    early = task.flush()
    clock.now += 60
    late = task.flush()
    context.close()

    assert (early, late) == ({ORDERS: 0}, {ORDERS: 3})
    assert lines(bucket) == [0, 1, 2]


@pytest.mark.parametrize("seen", [7, 12])
def test_an_attempt_that_had_ended_elsewhere_is_joined(bucket: Bucket, seen: int) -> None:
    """One died after its file was there and before the commit; the clock had ended it at 9."""
    clock, context = Clock(), MemorySinkContext()
    first = S3Task(clock=clock)
    config = parsed(bucket.config(rotate_schedule_interval_ms="60000", flush_size="100"))
    first.start(context, config)
    first.open([ORDERS])
    first.put(records(0, 9))
    clock.now += 60
    first.flush()
    context.close()

    context = MemorySinkContext()
    second = S3Task(clock=clock)
    second.start(context, config)
    second.open([ORDERS])
    second.put(records(0, seen))
    clock.now += 60
    second.flush()
    second.put(records(seen, 20))
    clock.now += 60
    durable = second.flush()
    context.close()

    assert lines(bucket) == list(range(20))
    assert durable == {ORDERS: 20}


def test_an_attempt_that_had_ended_behind_what_waits_is_joined(bucket: Bucket) -> None:
    """One died before the commit; since then files end by time, after each record."""
    put(bucket, [records(0, 3)], flush_size="3")

    durable = put(bucket, [records(0, 6)], flush_size="3", rotate_interval_ms="1000")

    assert [name[-7:-5] for name in bucket.names()] == ["00", "03", "04"]
    assert lines(bucket) == list(range(5))
    assert durable == {ORDERS: 5}


def test_files_end_by_the_time_of_records(bucket: Bucket) -> None:
    durable = put(bucket, [records(0, 10)], rotate_interval_ms="4000", flush_size="100")

    assert [name[-7:-5] for name in bucket.names()] == ["00", "04"]
    assert lines(bucket) == list(range(8))
    assert durable == {ORDERS: 8}


def test_fields_part_a_run_of_records_into_files_that_stand_or_fall_together(
    bucket: Bucket,
) -> None:
    given = [
        sink_record({"n": number, "kind": "ab"[number % 2]}, offset=number) for number in range(9)
    ]
    config = {"partitioner_class": "field", "partition_field_name": "kind", "flush_size": "6"}

    durable = put(bucket, [given], **config)

    assert bucket.names() == [
        "topics/orders/kind=a/orders+0+0000000000.json",
        "topics/orders/kind=b/orders+0+0000000001.json",
    ]
    assert sorted(lines(bucket)) == [0, 1, 2, 3, 4, 5]
    assert durable == {ORDERS: 6}


def test_the_contract_of_exactly_once_is_kept(bucket: Bucket) -> None:
    batches = [records(0, 12), records(12, 25)]

    contract.sink_repeats_nothing(S3Sink(), bucket.config(), batches, lambda: lines(bucket))

    assert lines(bucket) == list(range(20))


class Killed(BaseException):
    """Stands for kill -9: nothing of the task runs after it."""


@pytest.mark.slow
def test_whoever_is_killed_at_any_request_nothing_is_lost_and_nothing_is_there_twice(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, real = Random(4), Connection.exchange
    given = [
        sink_record({"n": number, "kind": f"k{number % 3}"}, offset=number, timestamp_ms=number)
        for number in range(60)
    ]
    config = parsed(
        bucket.config(
            partitioner_class="field",
            partition_field_name="kind",
            flush_size="8",
            rotate_schedule_interval_ms="1000",
        )
    )
    fate = {"asks": 0}

    def ask(connection: Connection, method: str, target: str, **named: Any) -> Any:
        fate["asks"] -= 1
        if fate["asks"] == 0 and random.random() < 0.5:
            raise Killed
        answer = real(connection, method, target, **named)
        if fate["asks"] == 0:
            raise Killed
        return answer

    monkeypatch.setattr(Connection, "exchange", ask)
    clock, committed, kills = Clock(), 0, 0
    while committed < 54:
        context = MemorySinkContext()
        task = S3Task(clock=clock)
        fate["asks"] = random.randint(2, 9)
        try:
            task.start(context, config)
            task.open([ORDERS])
            at = committed
            while at < len(given):
                step = random.randint(1, 7)
                task.put(given[at : at + step])
                at += step
                clock.now += random.choice([0, 0, 1])
                committed = task.flush().get(ORDERS, committed)
            fate["asks"] = 0
        except Killed:
            kills += 1
        context.close()

    found = lines(bucket)
    assert kills > 5
    assert len(found) == len(set(found))
    assert set(range(committed)) <= set(found)


def test_a_bucket_that_cannot_be_reached_loses_nothing(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = MemorySinkContext()
    task = S3Task()
    task.start(context, parsed(bucket.config()))
    task.open([ORDERS])

    def fail(*_: object) -> bool:
        raise RetriableError("away")

    with monkeypatch.context() as away:
        away.setattr(Store, "put", fail)
        for _ in range(3):
            with pytest.raises(RetriableError):
                task.put(records(0, 25))
        with pytest.raises(RetriableError):
            task.flush()
    task.put(records(0, 25))
    durable = task.flush()
    context.close()

    assert lines(bucket) == list(range(20))
    assert durable == {ORDERS: 20}


def test_a_file_of_a_topic_that_was_made_anew_is_not_taken_for_its_own(bucket: Bucket) -> None:
    put(bucket, [records(0, 10)])
    others = [sink_record({"n": n}, offset=n, timestamp_ms=n * 1000 + 1) for n in range(10)]

    with pytest.raises(ConnectorError, match="holds other records"):
        put(bucket, [others])


def test_a_file_of_somebody_else_is_left_alone(bucket: Bucket) -> None:
    name = "topics/orders/partition=0/orders+0+0000000000.json"
    bucket.client.put_object(Bucket=bucket.name, Key=name, Body=b"mine")

    with pytest.raises(ConnectorError, match="was not written by this sink"):
        put(bucket, [records(0, 10)])

    assert bucket.read(name) == b"mine"


def test_offsets_that_were_set_back_begin_anew(bucket: Bucket) -> None:
    context = MemorySinkContext()
    task = S3Task()
    task.start(context, parsed(bucket.config()))
    task.open([ORDERS])
    task.put(records(20, 25))
    task.start(context, parsed(bucket.config()))
    task.open([ORDERS])
    task.put(records(0, 10))
    durable = task.flush()
    context.close()

    assert lines(bucket) == list(range(10))
    assert durable == {ORDERS: 10}


def test_what_is_held_of_a_topic_that_was_made_anew_is_dropped(bucket: Bucket) -> None:
    """A new topic that has grown past the position would else lose what lies before."""
    context = MemorySinkContext(topic_ids={"orders": "one"})
    put(bucket, [records(0, 5)], context)
    context.topic_ids = {}
    not_told = put(bucket, [records(5, 7)], context)
    context.topic_ids = {"orders": "two"}
    durable = put(bucket, [records(0, 10)], context)
    context.close()

    assert (not_told, durable) == ({ORDERS: 0}, {ORDERS: 10})
    assert lines(bucket) == list(range(10))


def test_another_owner_does_not_take_over_what_was_kept(bucket: Bucket) -> None:
    context = MemorySinkContext()
    put(bucket, [records(0, 5)], context)
    context.epoch += 1
    task = S3Task()
    task.start(context, parsed(bucket.config()))

    assert task.open([ORDERS]) == {}
    context.close()


@pytest.mark.slow
def test_large_files_go_in_parts_and_leftovers_are_ended(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [sink_record({"n": n, "text": "x" * 700_000}, offset=n) for n in range(10)]
    real = Store.put_part

    def die(store: Store, key: str, upload: str, number: int, part: bytes) -> str:
        if number == 2:
            raise Killed
        return real(store, key, upload, number, part)

    with monkeypatch.context() as dying:
        dying.setattr(Store, "put_part", die)
        with pytest.raises(Killed):
            put(bucket, [given], s3_part_size=str(5 * 1024 * 1024))
    left = bucket.uploads()
    put(bucket, [given], s3_part_size=str(5 * 1024 * 1024))

    assert len(left) == 1
    assert bucket.uploads() == []
    assert lines(bucket) == list(range(10))


def test_memory_is_bounded_whatever_the_size_of_files(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MAX_CHUNK_BYTES", 1000)
    given = [sink_record({"n": n, "text": "x" * 200}, offset=n) for n in range(20)]

    put(bucket, [given], flush_size="1000000")

    assert len(bucket.names()) >= 3


def test_a_task_that_is_asked_to_lets_go_of_its_largest_files_early(bucket: Bucket) -> None:
    context = MemorySinkContext()
    given = [*records(0, 9), *records(0, 3, partition=1)]
    put(bucket, [given], context, flush_size="1000")
    held = context.held
    context.most_held = held // 2

    # All of it was given before, so nothing is put and the task is flushed only.
    durable = put(bucket, [given], context, flush_size="1000")
    context.close()

    assert durable == {ORDERS: 9, TopicPartition(topic="orders", partition=1): 0}
    assert 0 < context.held <= held // 2
    assert lines(bucket) == list(range(9))


def test_small_records_are_counted_with_what_keeps_them(bucket: Bucket) -> None:
    context = MemorySinkContext()
    tracemalloc.start()
    try:
        put(bucket, [records(0, 1000)], context, flush_size="2000")
        taken, _ = tracemalloc.get_traced_memory()
        counted = context.kept[KEPT].shelves[ORDERS].chunk.size
        context.kept[KEPT].shelves.clear()
        taken -= tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert counted > 0.7 * taken


def test_json_may_be_compressed(bucket: Bucket) -> None:
    put(bucket, [records(0, 10)], s3_compression_type="gzip")

    (name,) = bucket.names()
    assert name.endswith(".json.gz")
    assert gzip.decompress(bucket.read(name)).count(b"\n") == 10


@requires("pyarrow")
def test_parquet_files_have_the_columns_of_the_schema(bucket: Bucket) -> None:
    from pyarrow import parquet  # noqa: PLC0415

    given = [
        sink_record(Struct(ROW, {"id": n, "name": f"x{n}"}), offset=n, value_schema=ROW)
        for n in range(12)
    ]
    put(bucket, [given], format_class="parquet")

    (name,) = bucket.names()
    table = parquet.read_table(io.BytesIO(bucket.read(name)))
    assert name.endswith("orders+0+0000000000.snappy.parquet")
    assert table.to_pylist() == [{"id": n, "name": f"x{n}"} for n in range(10)]


@requires("pyarrow")
@pytest.mark.parametrize(
    "value", [{"id": 1}, Struct(ROW, {"id": 1}), Struct(ROW, {"id": "one", "name": "x"}), "text"]
)
def test_what_parquet_cannot_hold_is_the_fault_of_its_record(bucket: Bucket, value: Any) -> None:
    good = sink_record(Struct(ROW, {"id": 1, "name": "x"}), offset=0, value_schema=ROW)
    bad = sink_record(value, offset=1, value_schema=ROW)

    with pytest.raises(RecordError) as refused:
        put(bucket, [[good, bad]], format_class="parquet")

    assert refused.value.index == 1


def test_a_record_without_a_value_fails_or_is_left_out(bucket: Bucket) -> None:
    given = [*records(0, 5), sink_record(None, offset=5), *records(6, 11)]

    with pytest.raises(RecordError) as refused:
        put(bucket, [given])
    put(bucket, [given], behavior_on_null_values="ignore")

    assert refused.value.index == 5
    assert lines(bucket) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]


def test_a_refused_record_takes_no_other_with_it(bucket: Bucket) -> None:
    given = [*records(0, 5), sink_record({"n": float("nan")}, offset=5), *records(6, 11)]
    context = MemorySinkContext()
    task = S3Task()
    task.start(context, parsed(bucket.config()))
    task.open([ORDERS])

    with pytest.raises(RecordError) as refused:
        task.put(given)
    task.put(given[:5] + given[6:])
    context.close()

    assert refused.value.index == 5
    assert lines(bucket) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"s3_bucket_name": "not-there-at-all"}, "NoSuchBucket"),
        ({"store_url": "http://169.254.169.254"}, "link-local"),
        ({"store_url": "http://10.0.0.1"}, "private"),
    ],
)
def test_what_cannot_work_ends_the_task_with_the_reason(
    bucket: Bucket, config: dict[str, str], said: str
) -> None:
    with pytest.raises(ConnectorError, match=said) as failed:
        put(bucket, [records(0, 10)], **config)

    assert not isinstance(failed.value, RetriableError)


def test_a_record_that_is_sent_again_lies_beside_its_topic_in_a_file_of_its_own(
    bucket: Bucket,
) -> None:
    first = RecordPlace(topic="orders", partition=3, offset=0)
    again = sink_record({"n": 7}, topic="connect-s.retry", offset=0, retried=first)

    for _ in range(2):
        durable = put(bucket, [records(0, 1, partition=3), [again]], flush_size="1")

    assert bucket.names() == [
        "topics/orders/partition=3/connect-s.retry+0+0000000000.json",
        "topics/orders/partition=3/orders+3+0000000000.json",
    ]
    assert lines(bucket) == [7, 0]
    assert durable[TopicPartition(topic="connect-s.retry", partition=0)] == 1
