"""That a group lies in the partition in which Kafka keeps it."""

import pytest

from brokers.coordination.groups.values import NO_EXPIRY, Committed, java_hash, partition_of

# As Java's String.hashCode says.
HASHES = {
    "": 0,
    "a": 97,
    "abc": 96_354,
    "console-consumer-12345": 158_455_506,
    "analytics": -1_693_017_210,
    "polygenelubricants": -(2**31),
    "é": 233,
    "€": 8_364,
    "😀": 1_772_899,
}


@pytest.mark.parametrize(("text", "number"), HASHES.items())
def test_the_hash_is_the_one_of_java(text: str, number: int) -> None:
    assert java_hash(text) == number


def test_group_is_in_the_partition_that_kafka_computes() -> None:
    assert partition_of("abc", 50) == 96_354 % 50
    assert partition_of("analytics", 50) == 1_693_017_210 % 50


def test_the_least_number_has_no_positive_twin_and_means_the_first_partition() -> None:
    assert partition_of("polygenelubricants", 50) == 0


@pytest.mark.parametrize("partitions", [1, 3, 50])
def test_partition_of_a_group_is_within_the_count(partitions: int) -> None:
    found = {partition_of(f"group-{number}", partitions) for number in range(1_000)}
    assert found == set(range(partitions))


def test_an_offset_has_no_time_of_its_own_to_be_forgotten() -> None:
    assert Committed(1, 2, "", 3).expire_ms == NO_EXPIRY
