"""A topic's configs in words: values, sources, and what follows from several at once."""

import pytest

from console.queries.topic_values import Interaction, Value, interactions_of, values_of


def value(key: str, configs: dict[str, str], wide: dict[str, str] | None = None) -> Value:
    return next(each for each in values_of(configs, wide or {}) if each.key == key)


def said(
    configs: dict[str, str], *, wide: dict[str, str] | None = None, replication: int = 1
) -> list[Interaction]:
    return list(interactions_of(configs, wide or {}, replication=replication))


def test_a_value_names_its_source_and_what_would_hold_otherwise() -> None:
    of_topic = value("retention.ms", {"retention.ms": "1"}, {"log.retention.hours": "2"})
    of_all = value("retention.ms", {}, {"log.retention.hours": "2"})
    default = value("retention.ms", {})

    assert (of_topic.value, of_topic.inherited, of_topic.source) == ("1", "7200000", "this topic")
    assert (of_all.value, of_all.source) == ("7200000", "all brokers, log.retention.hours")
    assert (default.value, default.words, default.source) == ("604800000", "7 d", "default")


def test_what_a_topic_sets_comes_first_and_what_has_no_effect_last() -> None:
    keys = [each.key for each in values_of({"segment.ms": "1"}, {})]

    assert keys[0] == "segment.ms"
    assert keys[-1] == "unclean.leader.election.enable"
    assert value("preallocate", {}).no_effect


def test_a_config_for_tests_is_shown_where_it_is_set() -> None:
    key = "internal.segment.bytes"

    assert key not in [each.key for each in values_of({}, {})]
    assert value(key, {key: "61"}).is_set
    assert value("samsa.durability", {}).value == "auto"


@pytest.mark.parametrize(
    ("configs", "word", "sentence"),
    [
        ({}, "Note", "counts from the newest record of a closed segment"),
        ({"retention.ms": "3600000"}, "Note", "no effect before a segment is closed"),
        ({"retention.bytes": "5"}, "Takes more", "the open segment is never deleted"),
        ({"retention.ms": "-1"}, "Only grows", "nothing is ever deleted"),
        ({"cleanup.policy": ""}, "Only grows", "cleanup.policy is empty"),
        ({"cleanup.policy": "compact"}, "Note", "retention.ms and retention.bytes have no effect"),
        ({"cleanup.policy": "compact"}, "Note", "The marker of a deleted key is removed 1 d after"),
        ({"cleanup.policy": "compact,delete"}, "Note", "compacted and deleted from"),
        ({}, "Note", "The topic is not compacted"),
        ({"min.insync.replicas": "2"}, "Refuses writes", "acks=all are refused, always"),
        ({"max.message.bytes": "2000000", "segment.bytes": "1048576"}, "Never fits", "no segment"),
        ({"max.message.bytes": "209715200"}, "Never fits", "socket.request.max.bytes"),
        ({"message.timestamp.type": "LogAppendTime"}, "Note", "Records carry the broker's time"),
        ({"flush.ms": "5"}, "Note", "flush.messages and flush.ms have no effect"),
    ],
)
def test_what_follows_from_values_together_is_said(
    configs: dict[str, str], word: str, sentence: str
) -> None:
    assert any(each.word == word and sentence in each.sentence for each in said(configs))


def test_what_is_wrong_comes_before_what_is_only_worth_knowing() -> None:
    states = [each.state for each in said({"min.insync.replicas": "3"}, replication=3)]

    assert states == sorted(states, reverse=True)
    assert states[0] == "warn"


def test_a_value_of_all_brokers_counts_as_the_topics_own() -> None:
    found = said({}, wide={"log.retention.ms": "60000"})

    assert "retention.ms (1 min) has no effect before" in found[0].sentence


def test_the_only_copy_of_a_record_that_need_not_be_on_a_disk_is_warned_of() -> None:
    def words(durability: str, replication: int) -> list[str]:
        found = said({"samsa.durability": durability}, replication=replication)
        return [each.word for each in found]

    assert "One copy" in words("replicated", 1)
    assert "One copy" not in words("replicated", 2) + words("synced", 1) + words("auto", 1)
