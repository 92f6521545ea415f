"""What members should have: the hash of the topics, and which targets are new."""

import pytest

from brokers.coordination.groups import target
from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.modern_changes import Draft
from brokers.coordination.groups.target import metadata_hash, new_targets
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.coordination.groups.consumers import GROUP, cluster
from tests.brokers.coordination.groups.test_modern_changes import said
from tests.builders.clusters import broker, image, topic, topic_id


def test_the_hash_changes_with_the_topics_of_the_group_only() -> None:
    before = metadata_hash(["a", "b"], cluster(a=1, b=2, c=3))

    assert metadata_hash(["b", "a", "missing"], cluster(b=2, a=1)) == before
    assert metadata_hash(["a", "b"], cluster(a=2, b=2)) != before
    assert metadata_hash(["a"], cluster(a=1, b=2)) != before
    assert metadata_hash(["missing"], cluster(a=1)) == 0
    assert -(2**63) <= before < 2**63


def test_the_hash_changes_with_the_racks_of_the_replicas() -> None:
    topics = [topic("a", replicas=(1,))]
    hashes = {
        metadata_hash(["a"], image(topics, brokers=[broker(rack=rack)]))
        for rack in (None, "x", "y")
    }

    assert len(hashes) == 3


def test_only_changed_targets_are_returned() -> None:
    everything = cluster(t=2)
    draft = Draft(ConsumerGroup(id=GROUP))
    for name in ("a", "b"):
        draft.take(said(name))
    first = new_targets(draft.group(), everything)
    for change in first:
        draft.take(change)

    assert {each.member_id for each in first} == {"a", "b"}
    assert new_targets(draft.group(), everything) == []
    draft.take(said("c"))
    assert [(each.member_id, each.target) for each in new_targets(draft.group(), everything)] == [
        ("c", {})
    ]
    grown = new_targets(draft.group(), cluster(t=3))
    assert [(each.member_id, each.target) for each in grown] == [
        ("c", {topic_id("t"): frozenset({2})})
    ]


def test_an_assignor_that_fails_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spec: object) -> None:
        raise AssertionError("no sense in this")

    monkeypatch.setattr(target, "ASSIGNORS", {"uniform": fail})
    group = Draft(ConsumerGroup(id=GROUP)).take_all([said("a")])

    with pytest.raises(KafkaError, match="no sense in this") as refused:
        new_targets(group, cluster(t=1))

    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
