"""Which names a topic may have."""

import pytest

from brokers.cluster.topic_names import check_topic_name, collision_key, is_topic_name
from brokers.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "__consumer_offsets", "...", "x" * 249])
def test_legal_names_are_accepted(name: str) -> None:
    check_topic_name(name)
    assert is_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "is empty"),
        (".", "folder"),
        ("..", "folder"),
        ("x" * 250, "250 characters, 249 are allowed"),
        ("or ders", "letters"),
        ("orders\n", "letters"),
        ("bestellungen-ä", "letters"),
        ("../../etc", "letters"),
        ("a/b", "letters"),
        ("a\x00b", "letters"),
    ],
)
def test_other_names_are_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(KafkaError, match=reason) as refusal:
        check_topic_name(name)

    assert not is_topic_name(name)
    assert refusal.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert len(refusal.value.message) < 250


def test_names_collide_where_only_dots_and_underscores_differ() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a.b") != collision_key("ab")
