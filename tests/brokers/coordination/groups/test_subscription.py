"""The bytes of Kafka's own generated classes (4.3.0), and what other members may write."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.coordination.groups.subscription import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    decode_topics,
    encode_assignment,
)
from brokers.protocol.errors import EncodeError
from tests.scale import count

# Topics a and b, user data 9, owns a-0 and a-1 in generation 4, in rack r; by version.
SUBSCRIPTIONS = [
    "0000000000020001610001620000000109",
    "000100000002000161000162000000010900000001000161000000020000000000000001",
    "00020000000200016100016200000001090000000100016100000002000000000000000100000004",
    "00030000000200016100016200000001090000000100016100000002000000000000000100000004000172",
]
# Partitions 0 and 1 of a, none of b; without its version.
ASSIGNMENT = "0000000200016100000002000000000000000100016200000000ffffffff"

texts = st.text(st.characters(codec="utf-8"), max_size=20)
named = st.dictionaries(texts, st.frozensets(st.integers(-(2**31), 2**31 - 1), max_size=5))


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_of_kafka_is_read(version: int) -> None:
    assert decode_subscription(bytes.fromhex(SUBSCRIPTIONS[version])) == Subscription(
        version=version,
        topics=frozenset({"a", "b"}),
        user_data=b"\x09",
        owned={"a": frozenset({0, 1})} if version >= 1 else {},
        generation=4 if version >= 2 else -1,
        rack_id="r" if version >= 3 else None,
    )


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_has_the_bytes_of_kafka(version: int) -> None:
    encoded = version.to_bytes(2, "big") + bytes.fromhex(ASSIGNMENT)
    partitions = {"b": frozenset[int](), "a": frozenset({1, 0})}
    assert encode_assignment(partitions, version) == encoded
    assert decode_assignment(encoded) == Assignment(version=version, partitions=partitions)


def test_a_newer_version_is_read_as_the_highest_known_one() -> None:
    newer = bytes.fromhex("0063" + SUBSCRIPTIONS[3][4:] + "0badcafe")
    assert decode_subscription(newer) == decode_subscription(bytes.fromhex(SUBSCRIPTIONS[3]))
    assignment = decode_assignment(bytes.fromhex("0063" + ASSIGNMENT + "0badcafe"))
    assert assignment is not None
    assert assignment.version == 3


def test_user_data_and_rack_may_be_missing() -> None:
    read = decode_subscription(
        bytes.fromhex("000300000000" + "ffffffff" + "00000000ffffffff" + "ffff")
    )
    assert read == Subscription(version=3, topics=frozenset(), owned={}, generation=-1)


def test_a_topic_that_is_named_twice_has_the_partitions_of_both() -> None:
    twice = bytes.fromhex("000000000002" + "0001610000000100000001" + "0001610000000100000002")
    read = decode_assignment(twice + b"\xff\xff\xff\xff")
    assert read is not None
    assert read.partitions == {"a": frozenset({1, 2})}


@pytest.mark.parametrize("version", range(4))
def test_topics_are_read_without_the_bytes_after_them(version: int) -> None:
    data = bytes.fromhex(SUBSCRIPTIONS[version])
    assert decode_topics(data) == frozenset({"a", "b"})
    assert decode_topics(data[:12]) == frozenset({"a", "b"})
    assert all(decode_topics(data[:end]) is None for end in range(12))


@pytest.mark.parametrize("version", range(4))
def test_truncated_subscription_or_assignment_is_rejected(version: int) -> None:
    subscription = bytes.fromhex(SUBSCRIPTIONS[version])
    assert all(decode_subscription(subscription[:end]) is None for end in range(len(subscription)))
    assignment = version.to_bytes(2, "big") + bytes.fromhex(ASSIGNMENT)
    assert all(decode_assignment(assignment[:end]) is None for end in range(len(assignment)))


@pytest.mark.parametrize(
    "data",
    [
        "ffff00000000ffffffff",  # version -1
        "0000ffffffffffffffff",  # null topics
        "000000000001ffffffffffff",  # a null name
        "0000000000010001ffffffffff",  # a name that is not UTF-8
        "00007fffffff",  # more names than bytes
        "000000000000" + "7fffffff",  # more user data than bytes
        "000100000000ffffffff" + "7fffffff",  # more topics than bytes
        "000100000000ffffffff" + "00000001" + "000161" + "7fffffff",  # more partitions than bytes
    ],
)
def test_malformed_subscription_is_rejected(data: str) -> None:
    assert decode_subscription(bytes.fromhex(data)) is None


def test_a_lying_count_costs_no_memory() -> None:
    data = bytes.fromhex("00007fffffff") + bytes(100_000)
    tracemalloc.start()
    try:
        assert decode_subscription(data) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 2 * len(data)


@settings(max_examples=count(200, 500, long=20_000), deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_rejected(data: bytes) -> None:
    for version in (b"", b"\0\0", b"\0\1", b"\0\2", b"\0\3"):
        subscription = decode_subscription(version + data)
        assert subscription is None or decode_topics(version + data) == subscription.topics
        assignment = decode_assignment(version + data)
        assert assignment is None or assignment.version <= 3


@settings(max_examples=count(100, 200, long=10_000), deadline=None)
@given(named, st.integers(0, 3))
def test_any_assignment_comes_back(partitions: dict[str, frozenset[int]], version: int) -> None:
    encoded = encode_assignment(partitions, version)
    assert decode_assignment(encoded) == Assignment(version=version, partitions=partitions)


def test_a_name_that_does_not_fit_is_refused() -> None:
    with pytest.raises(EncodeError, match="a topic's name of 32768 bytes"):
        encode_assignment({"t" * 32_768: frozenset()}, 0)
