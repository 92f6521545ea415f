"""Metadata levels: every kind has one, and what is above the cluster's is refused by name."""

from typing import get_args

import pytest

from brokers.cluster import changes, levels, proposals
from brokers.cluster.changes import TopicRemoved
from brokers.cluster.levels import LevelTooLow
from brokers.cluster.proposals import DeleteTopic
from brokers.protocol.errors import ErrorCode, KafkaError

REMOVED = TopicRemoved(name="t", topic_id=bytes(16))


def test_every_kind_of_record_and_action_has_a_level_that_this_code_knows() -> None:
    assert set(levels.RECORD_LEVELS) == set(get_args(changes.Record))
    assert set(levels.ACTION_LEVELS) == set(get_args(proposals.Action))
    known = {*levels.RECORD_LEVELS.values(), *levels.ACTION_LEVELS.values()}
    assert min(known) == levels.FIRST_LEVEL
    assert max(known) <= levels.KNOWN_LEVEL


def test_action_of_a_known_level_passes() -> None:
    levels.check_action(DeleteTopic(name="t"), 1)
    levels.check_records([REMOVED], 1)
    levels.check_member("broker 1", 1, 1)


def test_a_kind_above_the_level_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(levels.ACTION_LEVELS, DeleteTopic, 3)
    monkeypatch.setitem(levels.RECORD_LEVELS, TopicRemoved, 2)

    with pytest.raises(LevelTooLow, match=r"DeleteTopic needs metadata level 3 .* is at 2") as one:
        levels.check_action(DeleteTopic(name="t"), 2)
    with pytest.raises(LevelTooLow, match="TopicRemoved needs metadata level 2"):
        levels.check_records([REMOVED], 1)

    assert one.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_those_who_hold_the_level_back_are_named_and_the_rest_counted() -> None:
    refusal = LevelTooLow("DeleteTopic", 2, 1)

    assert refusal.held_back_by([]).message.endswith("update them")
    assert refusal.held_back_by(["broker 1"]).message.endswith("update them (broker 1)")
    assert refusal.held_back_by(["a", "b", "c", "d", "e"]).message.endswith("(a, b, c and 2 more)")


def test_a_member_below_the_level_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"broker 3 knows metadata level 1 .* is at 2"):
        levels.check_member("broker 3", 1, 2)
