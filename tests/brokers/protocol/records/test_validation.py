"""What a broker takes from a producer and from a leader, and the codes it refuses the rest with."""

from dataclasses import replace

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records import validation
from brokers.protocol.records.batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    TimestampType,
    read_batch,
    stored_max_timestamp,
)
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.control import EndTxnMarker, build_end_txn
from brokers.protocol.records.reader import MIN_RECORD_SIZE, PACE
from brokers.protocol.records.record_faults import MAX_TOLD_FAULTS, RecordsRefused
from brokers.protocol.records.validation import (
    MAX_PARTS_AT_ONCE,
    NeedsInspection,
    Origin,
    ProduceRules,
    check_produced,
    check_records,
    check_replicated,
    inspecting,
)
from tests.brokers.protocol.records.samples import (
    CAPTURED,
    NOW_MS,
    SAMPLES,
    Sample,
    build,
    captured,
    seal,
)

RULES = ProduceRules()
STAMPING = ProduceRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
PRODUCED = [
    path.name
    for path in sorted(CAPTURED.glob("*.bin"))
    if path.name not in {"java-commit.bin", "java-abort.bin", "java-log-append-time.bin"}
]


def refusal(
    data: bytes | bytearray, rules: ProduceRules = RULES, origin: Origin = Origin.CLIENT
) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        check_at_length(data, rules, origin)
    return caught.value.code


def check_at_length(
    data: bytes | bytearray, rules: ProduceRules, origin: Origin = Origin.CLIENT
) -> int:
    """As a broker does, which inspects in steps what takes long; returns how many steps it took."""
    records, steps = memoryview(data), 0
    try:
        check_produced(records, rules, NOW_MS, origin)
    except NeedsInspection:
        steps = sum(1 for _ in inspecting(records, rules, NOW_MS))
        check_produced(records, rules, NOW_MS, origin, rules)
    return steps


def times(*timestamps: int) -> list[Sample]:
    return [(b"key", b"value", (), timestamp) for timestamp in timestamps]


@pytest.mark.parametrize("name", PRODUCED)
def test_what_real_clients_produce_is_accepted(name: str) -> None:
    data = captured(name)

    batch = check_produced(memoryview(data), RULES, NOW_MS)

    assert batch.record_count == 69
    assert batch.buffer.obj is data


def test_a_produced_batch_is_viewed_and_never_copied() -> None:
    data = build()

    check_produced(memoryview(data), RULES, NOW_MS).patch(33, 4)

    assert read_batch(memoryview(data)).base_offset == 33


@pytest.mark.parametrize("length", [0, 1, 60, 61, 100])
def test_less_than_a_batch_is_an_invalid_record(length: int) -> None:
    assert refusal(build()[:length]) is ErrorCode.INVALID_RECORD


def test_more_than_one_batch_is_an_invalid_record() -> None:
    assert refusal(build() + build()) is ErrorCode.INVALID_RECORD
    assert refusal(build() + b"\x00") is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("length", [-(2**31), -12, 0, 48, 2**31 - 1])
def test_a_lying_length_is_an_invalid_record(length: int) -> None:
    assert refusal(seal(build(), length=length)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [-1, 0, 1, 3])
def test_other_message_formats_are_an_invalid_record(magic: int) -> None:
    assert refusal(seal(build(), magic=magic)) is ErrorCode.INVALID_RECORD


def test_a_batch_above_the_limit_is_too_large() -> None:
    data = build()

    check_produced(memoryview(data), ProduceRules(max_batch_bytes=len(data)), NOW_MS)

    too_small = ProduceRules(max_batch_bytes=len(data) - 1)
    assert refusal(data, too_small) is ErrorCode.MESSAGE_TOO_LARGE


def test_a_wrong_crc_is_corrupt_so_that_clients_send_again() -> None:
    data = build()
    data[-1] ^= 0x10

    assert refusal(data) is ErrorCode.CORRUPT_MESSAGE
    assert refusal(seal(build(), crc=0)) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": 1},
        {"base_offset": -1},
        {"record_count": 0, "last_offset_delta": -1},
        {"record_count": -1, "last_offset_delta": -2},
        {"record_count": 2**31 - 1},
        {"record_count": 43},
        {"last_offset_delta": 44},
        {"last_offset_delta": 2**31 - 1, "record_count": -(2**31)},
        {"attributes": CONTROL_FLAG},
        {"attributes": 0x40},
        {"attributes": 0x80},
        {"attributes": 0x4000},
        {"attributes": -1 & ~LOG_APPEND_TIME_FLAG},
        {"attributes": TRANSACTIONAL_FLAG},
        {"producer_id": 1, "producer_epoch": 0, "base_sequence": -1},
        {"producer_id": 1, "producer_epoch": -1, "base_sequence": 0},
        {"producer_id": -2},
        {"producer_id": -(2**63), "producer_epoch": 0, "base_sequence": 0},
        {"max_timestamp": -2},
        {"max_timestamp": -(2**63)},
    ],
    ids=str,
)
def test_headers_that_contradict_themselves_are_invalid_records(fields: dict[str, int]) -> None:
    assert refusal(seal(build(), None, **fields)) is ErrorCode.INVALID_RECORD


def test_a_codec_nobody_knows_is_unsupported() -> None:
    for number in (5, 6, 7):
        data = seal(build(), attributes=number)
        assert refusal(data) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", Compression)
def test_transactional_and_idempotent_batches_of_every_codec_are_accepted(
    codec: Compression,
) -> None:
    data = build(
        compression=codec,
        producer_id=9,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )

    assert check_produced(memoryview(data), RULES, NOW_MS).is_transactional


@pytest.mark.parametrize(
    "flags", [0x40, 0x61, 0x20, 0xE0], ids=["dependent blocks", "dictionary", "no version", "3"]
)
def test_an_lz4_frame_that_java_cannot_read_is_an_invalid_record(flags: int) -> None:
    """Stored and acknowledged, it would stop every Java consumer of the partition."""
    sound = build(compression=Compression.LZ4)
    body = bytearray(sound[HEADER_SIZE:])
    body[4] = flags

    assert refusal(seal(sound, bytes(body))) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("body", [b"", b"\x04\x22\x4d\x18\x60", b"x" * 40])
def test_what_is_no_lz4_frame_at_all_is_an_invalid_record(body: bytes) -> None:
    assert refusal(counted(1, body, Compression.LZ4)) is ErrorCode.INVALID_RECORD


def test_only_coordinators_write_markers() -> None:
    marker = EndTxnMarker(is_commit=True, coordinator_epoch=5)
    data = build_end_txn(marker, producer_id=1, producer_epoch=2, timestamp=NOW_MS)

    batch = check_produced(memoryview(data), RULES, NOW_MS, Origin.COORDINATOR)

    assert batch.is_control
    assert refusal(data) is ErrorCode.INVALID_RECORD


def test_a_producer_may_not_claim_log_append_time() -> None:
    data = seal(build(), attributes=LOG_APPEND_TIME_FLAG)

    assert refusal(data) is ErrorCode.INVALID_TIMESTAMP
    assert refusal(data, STAMPING) is ErrorCode.INVALID_TIMESTAMP


def test_timestamps_too_far_ahead_are_refused_unless_the_broker_stamps() -> None:
    limit = RULES.timestamp_after_max_ms
    just_in, beyond = build(times(NOW_MS + limit)), build(times(0, NOW_MS + limit + 1, 5))

    check_produced(memoryview(just_in), RULES, NOW_MS)
    check_produced(memoryview(beyond), STAMPING, NOW_MS)

    assert refusal(beyond) is ErrorCode.INVALID_TIMESTAMP


def test_old_timestamps_are_welcome_by_default() -> None:
    check_produced(memoryview(build(times(0, -1))), RULES, NOW_MS)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_one_record_older_than_the_topic_allows_refuses_the_batch(codec: Compression) -> None:
    rules = ProduceRules(timestamp_before_max_ms=1000)
    young = build(times(NOW_MS, NOW_MS - 1000, -1), compression=codec)
    old = build(times(NOW_MS, NOW_MS - 1001, NOW_MS), compression=codec)

    check_produced(memoryview(young), rules, NOW_MS)
    check_produced(memoryview(old), replace(rules, timestamp_type=STAMPING.timestamp_type), NOW_MS)

    assert refusal(old, rules) is ErrorCode.INVALID_TIMESTAMP


def test_a_hidden_record_from_the_future_is_found_where_records_are_seen() -> None:
    """The header's maximum is believed on the fast path only; here it is too low."""
    ahead = NOW_MS + RULES.timestamp_after_max_ms + 1
    data = seal(build(times(NOW_MS, ahead)), max_timestamp=NOW_MS)

    check_produced(memoryview(data), RULES, NOW_MS)

    assert refusal(data, ProduceRules(are_keys_required=True)) is ErrorCode.INVALID_TIMESTAMP


def test_a_compacted_topic_refuses_a_record_without_a_key() -> None:
    rules = ProduceRules(are_keys_required=True)
    keyed, keyless = build(SAMPLES[1:]), build(SAMPLES)

    check_produced(memoryview(keyed), rules, NOW_MS)
    check_produced(memoryview(keyless), RULES, NOW_MS)

    assert refusal(keyless, rules) is ErrorCode.INVALID_RECORD


def test_a_marker_in_a_compacted_topic_is_not_opened() -> None:
    marker = EndTxnMarker(is_commit=False, coordinator_epoch=5)
    data = build_end_txn(marker, producer_id=1, producer_epoch=2, timestamp=NOW_MS)
    rules = ProduceRules(are_keys_required=True)

    assert check_produced(memoryview(data), rules, NOW_MS, Origin.COORDINATOR).is_control


def test_looking_inside_stops_at_the_cap_of_the_rules() -> None:
    data = build([(b"key", bytes(100_000), (), NOW_MS)], compression=Compression.ZSTD)
    rules = ProduceRules(are_keys_required=True, max_decompressed_bytes=50_000)

    assert refusal(data, rules) is ErrorCode.MESSAGE_TOO_LARGE


def counted(count: int, body: bytes, codec: Compression = Compression.NONE) -> bytearray:
    """Put a body under a header that claims `count` records in it."""
    fields = {"record_count": count, "last_offset_delta": count - 1}
    return seal(build(), body, attributes=codec, **fields)


def test_a_count_that_the_bytes_cannot_hold_is_an_invalid_record() -> None:
    """Offsets are handed out by the count, so a batch of 61 bytes must not take 2^31 of them."""
    assert refusal(counted(2**31 - 1, b"")) is ErrorCode.INVALID_RECORD
    assert refusal(counted(1, b"")) is ErrorCode.INVALID_RECORD
    assert refusal(counted(1, bytes(MIN_RECORD_SIZE - 1))) is ErrorCode.INVALID_RECORD
    assert refusal(counted(9, bytes(9 * MIN_RECORD_SIZE - 1))) is ErrorCode.INVALID_RECORD

    check_produced(memoryview(counted(9, bytes(9 * MIN_RECORD_SIZE))), RULES, NOW_MS)


def test_a_packed_body_holds_as_many_records_as_the_cap_lets_it_unpack_to() -> None:
    rules = ProduceRules(max_decompressed_bytes=700)

    check_produced(memoryview(counted(100, b"x", Compression.ZSTD)), rules, NOW_MS)

    assert refusal(counted(101, b"x", Compression.ZSTD), rules) is ErrorCode.INVALID_RECORD
    assert refusal(counted(2**31 - 1, b"x", Compression.LZ4)) is ErrorCode.INVALID_RECORD
    assert refusal(counted(1, b"", Compression.ZSTD)) is ErrorCode.INVALID_RECORD


KEYS_REQUIRED = ProduceRules(are_keys_required=True)


@pytest.mark.parametrize(
    "data",
    [
        counted(5, b"x" * 60),
        seal(build(SAMPLES[1:]), attributes=Compression.GZIP),
        seal(build(SAMPLES[1:], compression=Compression.ZSTD)[:-1]),
        seal(build(SAMPLES[1:]) + b"tail"),
        seal(build(SAMPLES[1:-1]), record_count=43, last_offset_delta=42),
    ],
    ids=["records", "codec", "cut", "tail", "count"],
)
def test_unsound_records_under_a_right_crc_are_invalid(data: bytearray) -> None:
    """Sent again they would be the same, so the retriable CORRUPT_MESSAGE would never end."""
    assert refusal(data, KEYS_REQUIRED) is ErrorCode.INVALID_RECORD


KEYED: Sample = (b"", None, (), NOW_MS)


@pytest.mark.slow
def test_many_records_are_inspected_in_steps_and_taken() -> None:
    data = build([(b"", None, (), NOW_MS)] * 60_000)

    with pytest.raises(NeedsInspection):
        check_produced(memoryview(data), KEYS_REQUIRED, NOW_MS)

    assert check_at_length(data, KEYS_REQUIRED) >= 60_000 // PACE


def test_records_that_were_inspected_by_other_rules_are_inspected_again() -> None:
    data = build([(b"", None, (), NOW_MS)] * (MAX_PARTS_AT_ONCE + 1))

    with pytest.raises(NeedsInspection):
        check_produced(memoryview(data), KEYS_REQUIRED, NOW_MS, Origin.CLIENT, RULES)


def test_a_record_without_a_key_is_found_however_many_there_are() -> None:
    rows = [KEYED] * 2 * MAX_PARTS_AT_ONCE

    assert refusal(build([*rows, (None, b"", (), NOW_MS)]), KEYS_REQUIRED) is (
        ErrorCode.INVALID_RECORD
    )


def test_a_batch_of_too_many_records_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "MAX_INSPECTED_PARTS", 2 * MAX_PARTS_AT_ONCE)
    most = [KEYED] * 2 * MAX_PARTS_AT_ONCE
    too_large = build([*most, most[0]])

    check_at_length(build(most), KEYS_REQUIRED)
    check_produced(memoryview(too_large), RULES, NOW_MS)

    assert refusal(too_large, KEYS_REQUIRED) is ErrorCode.MESSAGE_TOO_LARGE


def test_headers_count_as_much_as_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "MAX_INSPECTED_PARTS", 1_000)
    headers = ((b"", None),) * 1_000
    data = build([(b"", None, headers, NOW_MS)], compression=Compression.ZSTD)

    assert refusal(data, KEYS_REQUIRED) is ErrorCode.MESSAGE_TOO_LARGE


def test_the_deep_check_wants_offsets_without_gaps() -> None:
    builder = BatchBuilder()
    for offset in (0, 1, 3):
        builder.append(b"key", b"value", timestamp=NOW_MS, offset=offset)
    gapped = builder.build()

    check_records(read_batch(memoryview(build())))

    with pytest.raises(KafkaError, match="offset 3, expected 2"):
        check_records(read_batch(memoryview(gapped)))


def test_what_a_leader_sends_is_accepted_with_the_gaps_of_compaction() -> None:
    builder = BatchBuilder(base_offset=100, leader_epoch=2)
    for offset in (103, 109):
        builder.append(b"key", b"value", timestamp=NOW_MS, offset=offset)
    marker = EndTxnMarker(is_commit=True, coordinator_epoch=5)
    control = build_end_txn(marker, producer_id=1, producer_epoch=2, timestamp=NOW_MS)
    emptied = seal(build(base_offset=500, leader_epoch=3), b"", record_count=0)
    sent = build(base_offset=10, leader_epoch=2) + builder.build()
    sent += seal(control, base_offset=110, leader_epoch=3) + emptied

    accepted = check_replicated(memoryview(sent), expected_offset=7)

    assert [batch.base_offset for batch in accepted] == [10, 100, 110, 500]
    assert [batch.last_offset for batch in accepted] == [53, 109, 110, 543]
    assert check_replicated(memoryview(b""), expected_offset=7) == []


@pytest.mark.parametrize(
    "sent",
    [
        build(base_offset=6, leader_epoch=1),
        build(base_offset=7, leader_epoch=1) + build(base_offset=50, leader_epoch=1),
        build(base_offset=7, leader_epoch=2) + build(base_offset=90, leader_epoch=1),
        build(base_offset=7, leader_epoch=1)[:-1],
        build(base_offset=7, leader_epoch=1) + b"\x00" * 20,
        seal(build(base_offset=7, leader_epoch=1), crc=1),
        seal(build(base_offset=7, leader_epoch=1), record_count=-1),
        seal(build(base_offset=7, leader_epoch=1), record_count=45),
        seal(build(base_offset=7, leader_epoch=1), last_offset_delta=-1),
        seal(counted(2**31 - 1, b""), base_offset=7),
        seal(build(leader_epoch=1), base_offset=2**63 - len(SAMPLES)),
    ],
    ids=[
        *("known", "overlap", "epoch", "cut", "garbage", "crc", "count<0", "count", "delta"),
        *("bytes", "offset"),
    ],
)
def test_what_no_leader_may_send_is_corrupt(sent: bytearray) -> None:
    with pytest.raises(KafkaError) as caught:
        check_replicated(memoryview(sent), expected_offset=7)

    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_records_without_a_key_are_named_and_the_others_are_not(codec: Compression) -> None:
    rows = [(key, b"v", (), NOW_MS) for key in (b"a", None, b"b", None)]

    error = faults_of(build(rows, compression=codec), KEYS_REQUIRED)

    assert error.code is ErrorCode.INVALID_RECORD
    assert error.message.startswith("2 of 4 records are refused, and the batch with them: record 1")
    assert [fault.index for fault in error.faults] == [1, 3]
    assert {fault.message for fault in error.faults} == {
        "has no key, which a compacted topic needs"
    }


def test_a_time_outside_is_named_beside_a_missing_key() -> None:
    old = NOW_MS - 1_001
    rules = replace(KEYS_REQUIRED, timestamp_before_max_ms=1_000)
    rows = [(None, b"v", (), NOW_MS), (b"k", b"v", (), old), (None, b"v", (), old)]

    error = faults_of(build(rows), rules)

    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [(fault.index, fault.message.split()[1]) for fault in error.faults] == [
        (0, "no"),
        (1, "timestamp"),
        (2, "no"),
    ]


def test_records_from_the_future_are_named_where_that_takes_no_time() -> None:
    ahead = NOW_MS + RULES.timestamp_after_max_ms + 1
    few, many = times(NOW_MS, ahead, NOW_MS), times(*[ahead] * (MAX_PARTS_AT_ONCE + 1))

    for codec in (Compression.NONE, Compression.GZIP):
        error = faults_of(build(few, compression=codec), RULES)
        assert [fault.index for fault in error.faults] == [1]
    with pytest.raises(KafkaError, match="after the broker's time") as refused:
        check_produced(memoryview(build(many)), RULES, NOW_MS)
    assert refused.type is KafkaError


def test_an_answer_names_so_many_records_and_no_more() -> None:
    rows = [(None, b"v", (), NOW_MS)] * (MAX_TOLD_FAULTS + 5)

    with pytest.raises(RecordsRefused, match="1005 of 1005 records are refused") as refused:
        list(inspecting(memoryview(build(rows)), KEYS_REQUIRED, NOW_MS))

    assert len(refused.value.faults) == MAX_TOLD_FAULTS


def faults_of(data: bytearray, rules: ProduceRules) -> RecordsRefused:
    with pytest.raises(RecordsRefused) as refused:
        check_produced(memoryview(data), rules, NOW_MS)
    return refused.value


@pytest.mark.parametrize("count", [2, 2 * MAX_PARTS_AT_ONCE])
def test_a_header_whose_times_contradict_each_other_gets_that_of_the_records(count: int) -> None:
    data = seal(build(samples=times(*range(NOW_MS - count, NOW_MS))), max_timestamp=0)

    steps = check_at_length(data, RULES)

    assert (steps > 0) == (count > MAX_PARTS_AT_ONCE)
    stored = read_batch(memoryview(data))
    assert stored.max_timestamp == NOW_MS - 1
    stored.check_crc()


def test_a_coordinators_batch_is_taken_as_it_is() -> None:
    data = seal(build(samples=times(NOW_MS)), max_timestamp=0)

    check_produced(memoryview(data), RULES, NOW_MS, Origin.COORDINATOR)

    assert read_batch(memoryview(data)).max_timestamp == 0


@pytest.mark.parametrize(
    ("attributes", "base", "newest", "told"),
    [
        (0, NOW_MS - 1, NOW_MS, NOW_MS),
        (0, -1, 0, -1),
        (0, -1, -1, -1),
        (0, NOW_MS, 0, NOW_MS),
        (0, -1, NOW_MS, NOW_MS),
        (LOG_APPEND_TIME_FLAG, NOW_MS + 5, NOW_MS, NOW_MS),
        (DELETE_HORIZON_FLAG, NOW_MS + 5, NOW_MS, NOW_MS),
    ],
)
def test_a_stored_header_is_read_as_what_its_producer_can_have_meant(
    attributes: int, base: int, newest: int, told: int
) -> None:
    assert stored_max_timestamp(attributes, base, newest) == told
