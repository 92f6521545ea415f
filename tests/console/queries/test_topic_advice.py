"""What is advised before a topic is made or grows."""

import pytest

from console.queries.topic_advice import growths, suggestion

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("brokers", "rate", "partitions"),
    [
        (0, None, 3),
        (1, None, 3),
        (2, None, 4),
        (3, None, 3),
        (5, None, 5),
        (3, 1.0, 3),
        (1, 10 * MIB, 1),
        (1, 10 * MIB + 1, 2),
        (3, 35 * MIB, 6),
        (3, 10.0**11, 9_537),
        (3, 10.0**15, 10_000),
    ],
)
def test_partitions_are_enough_for_the_rate_and_even_over_brokers(
    brokers: int, rate: float | None, partitions: int
) -> None:
    assert suggestion(brokers=brokers, bytes_per_s=rate).partitions == partitions


def test_a_suggestion_says_why() -> None:
    assert suggestion(brokers=1, bytes_per_s=None).reason == (
        "3 consumers of a group can share them; one broker leads all of them"
    )
    assert "10,000" not in suggestion(brokers=3, bytes_per_s=20.0 * MIB).reason


def test_multiples_move_fewer_keys_than_odd_numbers() -> None:
    moved = {each.count: (each.moved, each.is_even) for each in growths(4, brokers=3)}

    assert moved == {
        5: ("80%", False),
        6: ("67%", True),
        8: ("50%", False),
        12: ("67%", True),
        16: ("75%", False),
    }


def test_no_growth_goes_beyond_what_a_topic_can_have() -> None:
    assert [each.count for each in growths(9_999, brokers=1)] == [10_000]
    assert growths(10_000, brokers=1) == ()
