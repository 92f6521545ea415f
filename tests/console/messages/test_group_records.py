"""Records of groups, field by field."""

import json
import random

import pytest

from brokers.coordination.groups import records
from brokers.coordination.groups.record_messages import (
    ConsumerGroupMetadataValue,
    GroupMetadataMember,
    GroupMetadataValue,
)
from brokers.coordination.groups.values import NO_EXPIRY, NO_TOPIC_ID, Committed
from brokers.protocol.codec import codec
from console.messages.group_records import shown_key, shown_value
from console.messages.lines import OFFSETS_TOPIC, Forms
from tests.builders.messages import record
from tests.scale import count

MOST = 16_384


def test_a_committed_offset_is_shown_by_field() -> None:
    key = records.offset_commit_key("billing", "orders", 3)
    committed = Committed(2**53 + 1, 7, "note", 1_795_082_400_000, NO_EXPIRY, NO_TOPIC_ID)
    value = records.offset_commit_value(committed)

    shown = shown_key(key, most=MOST), shown_value(key, value, most=MOST)

    assert [one.kind for one in shown] == ["offset_commit", "offset_commit"]
    assert json.loads(shown[0].text) == {"group_id": "billing", "topic": "orders", "partition": 3}
    told = json.loads(shown[1].text)
    assert told["offset"] == 2**53 + 1
    assert told["metadata"] == "note"
    assert shown[1].note == "version 3"


def test_a_classic_group_is_shown_with_its_members() -> None:
    key = records.encode_key(records.GroupKey("billing"))
    member = GroupMetadataMember(member_id="m-1", client_id="c", client_host="/127.0.0.1")
    member.subscription, member.assignment = b"\x00\x01", b""
    group = GroupMetadataValue(protocol_type="consumer", generation=4, members=[member])
    value = b"\x00\x03" + b"".join(codec(GroupMetadataValue, 3).encode(group))

    shown = shown_value(key, value, most=MOST)

    assert shown.kind == "group_metadata"
    told = json.loads(shown.text)
    assert told["generation"] == 4
    assert told["members"][0]["member_id"] == "m-1"
    assert told["members"][0]["subscription"] == {"$bytes": "AAE="}


def test_a_group_of_the_consumer_protocol_is_shown() -> None:
    key = records.encode_key(records.ConsumerGroupKey("billing"))
    group = ConsumerGroupMetadataValue(epoch=9)
    value = b"\x00\x00" + b"".join(codec(ConsumerGroupMetadataValue, 0).encode(group))

    assert shown_key(key, most=MOST).kind == "consumer_group_metadata"
    assert json.loads(shown_value(key, value, most=MOST).text)["epoch"] == 9


def test_what_deletes_is_null() -> None:
    key = records.offset_commit_key("billing", "orders", 3)

    assert shown_value(key, None, most=MOST).kind == "null"


@pytest.mark.parametrize(
    ("key", "note"),
    [
        (b"\x00", "a key of 1 bytes has no type"),
        (b"\x00\x63abc", "a key of type 99"),
        (b"\x00\x01\x00\x05ab", "no key of a group: "),
    ],
)
def test_what_is_no_key_of_a_group_says_why(key: bytes, note: str) -> None:
    assert note in shown_key(key, most=MOST).note


def test_only_the_topic_of_the_groups_is_read_so() -> None:
    key = records.offset_commit_key("billing", "orders", 3)

    of_groups, _ = Forms().shown(record(0, key=key, topic=OFFSETS_TOPIC))
    of_another, _ = Forms().shown(record(0, key=key))

    assert of_groups.kind == "offset_commit"
    assert of_another.kind == "hex"


def test_any_bytes_are_shown() -> None:
    rng = random.Random(13)
    good = records.offset_commit_key("billing", "orders", 3)
    for _ in range(count(1_000, 3_000, long=100_000)):
        number = rng.randint(0, 20).to_bytes(2)
        key = rng.choice([good, number + rng.randbytes(rng.randint(0, 30))])
        value = rng.choice([None, number + rng.randbytes(rng.randint(0, 60))])
        for shown in (shown_key(key, most=MOST), shown_value(key, value, most=MOST)):
            shown.text.encode()
