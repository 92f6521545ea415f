"""What an agent adds to requests for producer ids, so that an old database repeats none."""

from brokers.cluster.proposals import (
    AllocateProducerIds,
    CreateTopic,
    Outcome,
    ProducerIdsResult,
    Proposal,
)
from brokers.controlplane.issued_ids import SKIP_BITS, IssuedIds

SKIP = 123_456


def asked(issued: IssuedIds, highest_seen: int = -1) -> AllocateProducerIds:
    proposal = Proposal(
        id=bytes(16), action=AllocateProducerIds(highest_seen=highest_seen), actor="User:alice"
    )
    (amended,) = issued.amended([proposal])
    assert isinstance(amended.action, AllocateProducerIds)
    return amended.action


def given(issued: IssuedIds, first: int) -> None:
    issued.take([Outcome(result=ProducerIdsResult(first=first, count=1000))], doubts=issued.doubts)


def test_a_block_begins_above_what_any_broker_of_the_host_has_reported() -> None:
    issued = IssuedIds(lambda: SKIP)
    issued.reported(5_000)
    issued.reported(70)

    assert asked(issued, highest_seen=42).highest_seen == 5_000
    assert asked(issued, highest_seen=9_000).highest_seen == 9_000


def test_a_block_begins_above_those_given_to_other_brokers_of_the_host() -> None:
    issued = IssuedIds(lambda: SKIP)

    given(issued, 3_000)

    assert asked(issued).highest_seen == 3_999


def test_only_a_block_after_a_start_a_lost_connection_or_a_registration_leaves_ids_out() -> None:
    issued = IssuedIds(lambda: SKIP)
    assert asked(issued).skip == SKIP

    given(issued, 3_000)
    assert asked(issued).skip == 0

    issued.doubt()
    assert asked(issued).skip == SKIP

    given(issued, 9_000)
    issued.reported(-1)
    assert asked(issued).skip == SKIP


def test_a_block_that_was_asked_for_before_a_doubt_does_not_end_it() -> None:
    issued = IssuedIds(lambda: SKIP)
    given(issued, 3_000)
    doubts = issued.doubts

    issued.reported(70)
    issued.take([Outcome(result=ProducerIdsResult(first=4_000, count=1000))], doubts=doubts)

    assert asked(issued) == AllocateProducerIds(highest_seen=4_999, skip=SKIP)


def test_a_refusal_does_not_count_as_a_block() -> None:
    issued = IssuedIds(lambda: SKIP)

    issued.take([Outcome()], doubts=issued.doubts)

    assert asked(issued).skip == SKIP


def test_what_a_broker_asks_to_leave_out_is_not_believed() -> None:
    issued = IssuedIds(lambda: 0)
    proposal = Proposal(id=bytes(16), action=AllocateProducerIds(skip=2**62), actor="User:alice")

    (amended,) = issued.amended([proposal])

    assert amended.action == AllocateProducerIds()


def test_other_proposals_pass_unchanged() -> None:
    proposal = Proposal(id=bytes(16), action=CreateTopic(name="orders"), actor="User:alice")

    assert IssuedIds().amended([proposal]) == [proposal]


def test_ids_left_out_are_random() -> None:
    skips = {asked(IssuedIds()).skip for _ in range(20)}

    assert len(skips) == 20
    assert max(skips) < 2**SKIP_BITS
