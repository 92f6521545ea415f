"""The bytes of Kafka's own generated classes (4.3.0), and what hostile bytes do."""

import time
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.coordination.groups import records
from brokers.coordination.groups.record_messages import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    GroupMetadataMember,
    GroupMetadataValue,
    OffsetCommitValue,
    TargetTopicPartitions,
)
from brokers.coordination.groups.records import (
    ConsumerGroupKey,
    CurrentMemberKey,
    GroupKey,
    Key,
    MemberKey,
    OffsetKey,
    PartitionMetadataKey,
    RegexKey,
    TargetKey,
    TargetMemberKey,
)
from brokers.coordination.groups.values import NO_EPOCH, NO_EXPIRY, NO_TOPIC_ID, Committed
from brokers.coordination.shard import Record
from brokers.protocol.codec import codec
from brokers.protocol.errors import EncodeError, ErrorCode, KafkaError
from brokers.protocol.schema import Message
from tests.scale import count

TOPIC_ID = bytes(range(1, 17))

KEYS: dict[str, Key] = {
    "000100016700017400000007": OffsetKey("g", "t", 7),
    "0002000167": GroupKey("g"),
    "0003000167": ConsumerGroupKey("g"),
    "0004000167": PartitionMetadataKey("g"),
    "000500016700016d": MemberKey("g", "m"),
    "0006000167": TargetKey("g"),
    "000700016700016d": TargetMemberKey("g", "m"),
    "000800016700016d": CurrentMemberKey("g", "m"),
    "00100001670003612e2a": RegexKey("g", "a.*"),
}

# As Kafka writes the offset 258, committed at 1000 with the metadata "é", by version.
OFFSETS = {
    "000000000000000001020002c3a900000000000003e8": Committed(258, -1, "é", 1000),
    "000100000000000001020002c3a900000000000003e800000000000007d0": Committed(
        258, -1, "é", 1000, 2000
    ),
    "000200000000000001020002c3a900000000000003e8": Committed(258, -1, "é", 1000),
    "00030000000000000102000000050002c3a900000000000003e8": Committed(258, 5, "é", 1000),
    "000400000000000001020000000503c3a900000000000003e8"
    "0100100102030405060708090a0b0c0d0e0f10": Committed(
        258, 5, "é", 1000, topic_id=bytes(range(1, 17))
    ),
}


def group(version: int) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=4,
        protocol="range",
        leader="m",
        current_state_ms=1000 if version >= 2 else -1,
        members=[
            GroupMetadataMember(
                member_id="m",
                group_instance_id="i" if version >= 3 else None,
                client_id="c",
                client_host="/h",
                rebalance_timeout_ms=60 if version >= 1 else 0,
                session_timeout_ms=30,
                subscription=b"\1",
                assignment=b"\2\3",
            )
        ],
    )


# What is written, each under its key, as Kafka writes it.
VALUES: list[tuple[Key, str, Message]] = [
    (
        GroupKey("g"),
        (
            "00030008636f6e73756d657200000004000572616e676500016d00000000000003e80000000100016d0001"
            "6900016300022f680000003c0000001e0000000101000000020203"
        ),
        group(3),
    ),
    (
        GroupKey("g"),
        "0003000000000000ffffffff00000000000003e800000000",
        GroupMetadataValue(current_state_ms=1000),
    ),
    (
        ConsumerGroupKey("g"),
        "0000000000030100080000000000000009",
        ConsumerGroupMetadataValue(epoch=3, metadata_hash=9),
    ),
    (ConsumerGroupKey("g"), "00000000000300", ConsumerGroupMetadataValue(epoch=3)),
    (
        MemberKey("g", "m"),
        "00000269000263032f680302610262010000003c0672616e676501000c010000001e02027002010000",
        ConsumerGroupMemberMetadataValue(
            instance_id="i",
            client_id="c",
            client_host="/h",
            subscribed_topic_names=["a", "b"],
            subscribed_topic_regex="",
            rebalance_timeout_ms=60,
            server_assignor="range",
            classic_member_metadata=ClassicMemberMetadata(
                session_timeout_ms=30,
                supported_protocols=[ClassicProtocol(name="p", metadata=b"\1")],
            ),
        ),
    ),
    (
        MemberKey("g", "m"),
        "00000002720263032f680104612e2affffffff0001000100",
        ConsumerGroupMemberMetadataValue(
            rack_id="r", client_id="c", client_host="/h", subscribed_topic_regex="a.*"
        ),
    ),
    (
        TargetKey("g"),
        "00000000000301000800000000000003e8",
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=3, assignment_ms=1000),
    ),
    (
        TargetMemberKey("g", "m"),
        "0000020102030405060708090a0b0c0d0e0f100300000000000000020000",
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[TargetTopicPartitions(topic_id=TOPIC_ID, partitions=[0, 2])]
        ),
    ),
    (
        CurrentMemberKey("g", "m"),
        (
            "0000000000030000000201020102030405060708090a0b0c0d0e0f100300000000000000020100090300"
            "00000100000003020102030405060708090a0b0c0d0e0f1002000000010000"
        ),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=3,
            previous_member_epoch=2,
            state=1,
            assigned_partitions=[
                CurrentTopicPartitions(
                    topic_id=TOPIC_ID, partitions=[0, 2], assignment_epochs=[1, 3]
                )
            ],
            partitions_pending_revocation=[
                CurrentTopicPartitions(topic_id=TOPIC_ID, partitions=[1])
            ],
        ),
    ),
    (
        RegexKey("g", "a.*"),
        "00000302610262000000000000000c00000000000003e800",
        ConsumerGroupRegularExpressionValue(topics=["a", "b"], version=12, timestamp_ms=1000),
    ),
]

# The other versions of a classic group.
OLD_GROUPS = {
    0: "00000008636f6e73756d657200000004000572616e676500016d0000000100016d00016300022f680000001e"
    "0000000101000000020203",
    1: "00010008636f6e73756d657200000004000572616e676500016d0000000100016d00016300022f680000003c"
    "0000001e0000000101000000020203",
    2: "00020008636f6e73756d657200000004000572616e676500016d00000000000003e80000000100016d000163"
    "00022f680000003c0000001e0000000101000000020203",
    4: "000409636f6e73756d6572000000040672616e6765026d00000000000003e802026d02690263032f68000000"
    "3c0000001e02010302030000",
}

texts = st.text(st.characters(codec="utf-8"), max_size=40)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
epochs = st.integers(0, 2**31 - 1)


@pytest.mark.parametrize(("encoded", "key"), KEYS.items())
def test_a_key_has_the_bytes_of_kafka(encoded: str, key: Key) -> None:
    assert records.encode_key(key).hex() == encoded
    assert records.decode_key(bytes.fromhex(encoded)) == key
    assert type(records.decode_key(bytes.fromhex(encoded))) is type(key)


def test_an_offset_key_of_the_first_form_names_the_same() -> None:
    key = bytes.fromhex("000000016700017400000007")
    assert records.decode_key(key) == OffsetKey("g", "t", 7)


@pytest.mark.parametrize("number", [9, 15, 17, 4096, 65535])
def test_key_of_another_kind_of_group_is_ignored(number: int) -> None:
    assert records.decode_key(number.to_bytes(2, "big") + b"whatever") is None


@pytest.mark.parametrize(("encoded", "committed"), OFFSETS.items())
def test_an_offset_is_read_in_every_version(encoded: str, committed: Committed) -> None:
    assert records.decode_committed(bytes.fromhex(encoded)) == committed


def test_an_offset_is_written_with_its_topic_id_or_an_expiry_or_neither() -> None:
    written = {
        encoded
        for encoded, committed in OFFSETS.items()
        if records.offset_commit_value(committed).hex() == encoded
    }
    assert {encoded[:4] for encoded in written} == {"0001", "0003", "0004"}


def test_an_offset_with_an_expiry_loses_its_epoch_at_once_and_not_at_the_next_load() -> None:
    record = records.committed_record("g", "t", 0, Committed(1, 5, "", 2, 3))
    assert record.decoded == Committed(1, NO_EPOCH, "", 2, 3)
    assert record.value is not None
    assert records.decode_committed(record.value) == record.decoded


@pytest.mark.parametrize(("key", "encoded", "value"), VALUES, ids=lambda part: str(part)[:40])
def test_a_value_has_the_bytes_of_kafka(key: Key, encoded: str, value: Message) -> None:
    assert not isinstance(key, OffsetKey)
    record = records.record_of(key, value)
    assert record.value is not None
    assert record.value.hex() == encoded
    assert record.key == records.encode_key(key)
    assert records.decode_value(type(value), record.value) == value


@pytest.mark.parametrize(("version", "encoded"), OLD_GROUPS.items())
def test_a_classic_group_is_read_in_every_version(version: int, encoded: str) -> None:
    read = records.decode_value(GroupMetadataValue, bytes.fromhex(encoded))
    assert read == group(version)


def test_a_member_without_the_tag_of_classic_ones_is_read_as_one_of_the_new_protocol() -> None:
    old = bytes.fromhex("00000002720263032f680104612e2affffffff0000")
    read = records.decode_value(ConsumerGroupMemberMetadataValue, old)
    assert read.classic_member_metadata is None


def test_tags_of_a_newer_broker_are_passed_over() -> None:
    with_creation_time = bytes.fromhex("00000000000301" + "0108" + "00000000000003e8")
    assert records.decode_value(ConsumerGroupMetadataValue, with_creation_time).epoch == 3


def test_a_tombstone_has_the_key_and_no_value() -> None:
    record = records.tombstone(MemberKey("g", "m"))
    assert record == Record(bytes.fromhex("000500016700016d"), None)
    assert records.value_of(record, ConsumerGroupMemberMetadataValue) is None
    assert records.committed_of(records.tombstone(OffsetKey("g", "t", 0))) is None


def test_a_record_is_read_the_same_with_and_without_what_it_brings_along() -> None:
    for key, _, value in VALUES:
        assert not isinstance(key, OffsetKey)
        live = records.record_of(key, value)
        loaded = Record(live.key, live.value)
        assert records.value_of(live, type(value)) is value
        assert records.value_of(loaded, type(value)) == value
    commit = records.committed_record("g", "t", 1, Committed(1, 2, "x", 3))
    assert records.committed_of(commit) == records.committed_of(Record(commit.key, commit.value))


def test_a_value_under_the_key_of_another_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="does not belong to GroupKey"):
        records.record_of(GroupKey("g"), ConsumerGroupMetadataValue())


@settings(max_examples=count(100, 200, long=10_000), deadline=None)
@given(texts, texts, int32s)
def test_keys_of_any_text_come_back(one: str, other: str, number: int) -> None:
    keys: list[Key] = [OffsetKey(one, other, number), GroupKey(one), MemberKey(one, other)]
    for key in [*keys, RegexKey(one, other)]:
        assert records.decode_key(records.encode_key(key)) == key


@settings(max_examples=count(100, 200, long=10_000), deadline=None)
@given(
    st.builds(
        Committed,
        int64s,
        epochs,
        st.one_of(texts, st.text(min_size=100, max_size=150)),
        int64s,
        st.one_of(st.just(NO_EXPIRY), st.integers(0, 2**63 - 1)),
        st.one_of(st.just(NO_TOPIC_ID), st.binary(min_size=16, max_size=16)),
    )
)
def test_any_offset_comes_back_and_has_the_bytes_of_the_codec(told: Committed) -> None:
    record = records.committed_record("g", "t", 0, told)
    assert record.value is not None
    read = records.decode_committed(record.value)
    assert read == record.decoded
    if told.expire_ms == NO_EXPIRY:
        assert read == told
        version = 3 if told.topic_id == NO_TOPIC_ID else 4
    else:
        assert read == told._replace(leader_epoch=NO_EPOCH, topic_id=NO_TOPIC_ID)
        version = 1
    by_codec = codec(OffsetCommitValue, version).encode(OffsetCommitValue(*read))
    assert record.value[2:] == b"".join(by_codec)


@settings(max_examples=count(60, 150, long=5_000), deadline=None)
@given(st.lists(st.tuples(texts, st.none() | texts, st.binary(max_size=30)), max_size=5))
def test_any_classic_group_comes_back(members: list[tuple[str, str | None, bytes]]) -> None:
    value = GroupMetadataValue(
        members=[
            GroupMetadataMember(member_id=name, group_instance_id=instance, assignment=given)
            for name, instance, given in members
        ]
    )
    record = records.record_of(GroupKey("g"), value)
    assert record.value is not None
    assert records.decode_value(GroupMetadataValue, record.value) == value


@settings(max_examples=count(60, 150, long=5_000), deadline=None)
@given(st.lists(st.lists(st.tuples(int32s, int32s), max_size=4), max_size=4), st.booleans())
def test_any_current_assignment_comes_back(
    topics: list[list[tuple[int, int]]], has_epochs: bool
) -> None:
    parts = [
        CurrentTopicPartitions(
            topic_id=bytes([number]) * 16,
            partitions=[index for index, _ in pairs],
            assignment_epochs=[epoch for _, epoch in pairs] if has_epochs else None,
        )
        for number, pairs in enumerate(topics)
    ]
    value = ConsumerGroupCurrentMemberAssignmentValue(assigned_partitions=parts, state=2)
    record = records.record_of(CurrentMemberKey("g", "m"), value)
    assert record.value is not None
    assert records.decode_value(ConsumerGroupCurrentMemberAssignmentValue, record.value) == value


# -- hostile bytes -----------------------------------------------------------------------------


def readings() -> Iterator[tuple[bytes, type[Message] | None]]:
    """Every kind of value, with the class that reads it; None for an offset's."""
    for encoded in OFFSETS:
        yield bytes.fromhex(encoded), None
    for _, encoded, value in VALUES:
        yield bytes.fromhex(encoded), type(value)
    for encoded in OLD_GROUPS.values():
        yield bytes.fromhex(encoded), GroupMetadataValue


def read(value: bytes, kind: type[Message] | None) -> object:
    return records.decode_committed(value) if kind is None else records.decode_value(kind, value)


def refused(value: bytes, kind: type[Message] | None) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        read(value, kind)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    return caught.value


def test_every_value_that_is_cut_short_or_too_long_is_corrupt() -> None:
    for value, kind in readings():
        for end in range(len(value)):
            refused(value[:end], kind)
        refused(value + b"\0", kind)


def test_every_key_that_is_cut_short_or_too_long_is_corrupt() -> None:
    for encoded in KEYS:
        key = bytes.fromhex(encoded)
        for wrong in [*(key[:end] for end in range(len(key))), key + b"\0"]:
            with pytest.raises(KafkaError) as caught:
                records.decode_key(wrong)
            assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_key_with_a_negative_length_or_bad_text_is_corrupt() -> None:
    for wrong, words in [("0002ffff", "has length -1"), ("00020001ff", "not UTF-8")]:
        with pytest.raises(KafkaError, match=words):
            records.decode_key(bytes.fromhex(wrong))


@pytest.mark.parametrize("version", [-1, 5, 300])
def test_unknown_version_is_named(version: int) -> None:
    value = version.to_bytes(2, "big", signed=True) + bytes(40)
    for kind in (None, GroupMetadataValue):
        assert f"has version {version}; 0 to 4 are known" in refused(value, kind).message


@settings(max_examples=count(300, 1_000, long=100_000), deadline=None)
@given(st.data())
def test_a_changed_byte_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    value, kind = data.draw(st.sampled_from(list(readings())))
    where = data.draw(st.integers(0, len(value) - 1))
    changed = bytearray(value)
    changed[where] = data.draw(st.integers(0, 255))
    code = None
    try:
        read(bytes(changed), kind)
    except KafkaError as error:
        code = error.code
    assert code in {None, ErrorCode.CORRUPT_MESSAGE}


def test_a_lying_count_costs_no_memory() -> None:
    members_at = bytes.fromhex("0003000000000000ffffffff00000000000003e8")
    lying = members_at + (2**31 - 1).to_bytes(4, "big") + bytes(100_000)
    refused(lying[:30], GroupMetadataValue)  # the codec is made on its first use
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError):
            records.decode_value(GroupMetadataValue, lying)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 2 * len(lying)


def test_value_that_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(EncodeError, match="a string of 32768 bytes exceeds the limit of 32767"):
        records.encode_key(GroupKey("g" * 32_768))
    with pytest.raises(EncodeError, match="a committed offset"):
        records.offset_commit_value(Committed(1, 1, "m" * 32_768, 1))


def test_an_offset_is_packed_and_read_in_a_few_microseconds() -> None:
    committed = Committed(123_456, 7, "", 1_700_000_000_000, topic_id=b"t" * 16)

    def once() -> float:
        started = time.process_time()
        for _ in range(2_000):
            record = records.committed_record("group", "topic", 3, committed)
            records.decode_key(record.key)
            records.decode_committed(record.value or b"")
        return (time.process_time() - started) / 2_000

    # 4 µs are the aim; the room is for a machine that is busy with other tests.
    assert min(once() for _ in range(3)) < 20e-6
