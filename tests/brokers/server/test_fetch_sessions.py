"""Fetch sessions: their epochs, what they remember, and who must go when there are too many."""

import random
from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from brokers.server.fetch_sessions import FetchSessions, Interest
from tests.fakes.clock import ManualClock

EVICTABLE_MS = 121_000


def request(session_id: int = 0, epoch: int = 0, *indexes: int, **fields: Any) -> FetchRequest:
    topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=i) for i in indexes])]
    return FetchRequest(
        session_id=session_id, session_epoch=epoch, topics=topics if indexes else [], **fields
    )


def sessions(clock: ManualClock | None = None, **limits: int) -> FetchSessions:
    return FetchSessions(clock=clock or ManualClock(), rng=random.Random(1), **limits)


def opened(kept: FetchSessions, *indexes: int) -> int:
    plan = kept.plan(request(0, 0, *indexes), speaks_of_ids=False)
    assert plan.can_open
    return kept.open(plan.interests, speaks_of_ids=False)


def indexes(kept: FetchSessions, asked: FetchRequest) -> list[int]:
    plan = kept.plan(asked, speaks_of_ids=False)
    return [interest.wanted.partition for interest in plan.interests]


def test_a_session_remembers_adds_changes_and_forgets() -> None:
    kept = sessions()
    number = opened(kept, 0, 1)

    assert indexes(kept, request(number, 1)) == [0, 1]
    assert indexes(kept, request(number, 2, 2)) == [0, 1, 2]
    forgets = [ForgottenTopic(topic="t", partitions=[1, 7])]
    assert indexes(kept, request(number, 3, forgotten_topics_data=forgets)) == [0, 2]
    assert kept.remembered == 2


def test_a_changed_offset_replaces_the_old_one_and_keeps_its_place() -> None:
    kept = sessions()
    number = opened(kept, 0, 1)
    changed = request(number, 1, 0)
    changed.topics[0].partitions[0].fetch_offset = 42

    plan = kept.plan(changed, speaks_of_ids=False)

    assert [i.wanted.fetch_offset for i in plan.interests] == [42, 0]


def test_epochs_go_up_one_by_one_and_begin_again_at_one() -> None:
    kept = sessions()
    number = opened(kept, 0)
    session = kept.plan(request(number, 1), speaks_of_ids=False).session
    assert session is not None
    session.epoch = 2**31 - 1

    kept.plan(request(number, 2**31 - 1), speaks_of_ids=False)

    assert session.epoch == 1


@pytest.mark.parametrize("epoch", [1, 3, 7])
def test_an_epoch_out_of_turn_is_refused_and_the_session_goes_on(epoch: int) -> None:
    kept = sessions()
    number = opened(kept, 0)
    kept.plan(request(number, 1), speaks_of_ids=False)

    with pytest.raises(KafkaError, match="at epoch 2") as caught:
        kept.plan(request(number, epoch), speaks_of_ids=False)

    assert caught.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert indexes(kept, request(number, 2)) == [0]


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_full_request_ends_the_session_it_names(epoch: int) -> None:
    kept = sessions()
    number = opened(kept, 0)

    plan = kept.plan(request(number, epoch, 5), speaks_of_ids=False)

    assert (len(kept), kept.remembered) == (0, 0)
    assert plan.can_open == (epoch == 0)
    with pytest.raises(KafkaError, match="is not kept"):
        kept.plan(request(number, 1), speaks_of_ids=False)


def test_a_session_that_forgets_everything_ends() -> None:
    kept = sessions()
    number = opened(kept, 0)
    forgets = [ForgottenTopic(topic="t", partitions=[0])]

    plan = kept.plan(request(number, 1, forgotten_topics_data=forgets), speaks_of_ids=False)

    assert (plan.session, plan.interests, len(kept)) == (None, [], 0)


def test_nothing_to_read_needs_no_session() -> None:
    assert opened(sessions()) == 0


def test_without_room_there_is_no_session() -> None:
    kept = sessions(max_sessions=2)

    assert [opened(kept, 0) > 0 for _ in range(3)] == [True, True, False]


def test_a_session_out_of_use_makes_room() -> None:
    clock = ManualClock()
    kept = sessions(clock, max_sessions=2)
    first, second = opened(kept, 0, 1, 2), opened(kept, 0, 1, 2)
    clock.advance(EVICTABLE_MS)
    kept.plan(request(first, 1), speaks_of_ids=False)

    third = opened(kept, 0)

    assert third > 0
    assert indexes(kept, request(first, 2)) == [0, 1, 2]
    with pytest.raises(KafkaError, match="is not kept"):
        kept.plan(request(second, 1), speaks_of_ids=False)


def test_a_larger_session_takes_the_place_of_a_smaller_one_that_had_its_time() -> None:
    clock = ManualClock()
    kept = sessions(clock, max_sessions=2)
    small, large = opened(kept, 0), opened(kept, 0, 1, 2)
    clock.advance(EVICTABLE_MS)
    for number in (small, large):
        kept.plan(request(number, 1), speaks_of_ids=False)

    assert opened(kept, 0) == 0
    assert opened(kept, 0, 1) > 0
    with pytest.raises(KafkaError, match="is not kept"):
        kept.plan(request(small, 2), speaks_of_ids=False)


def test_partitions_of_all_sessions_are_bounded() -> None:
    kept = sessions(max_remembered=3)

    assert opened(kept, 0, 1) > 0
    assert opened(kept, 0, 1) == 0
    assert opened(kept, 0, 1, 2, 3) == 0
    assert kept.remembered == 2


def test_a_session_that_grows_beyond_the_bound_ends() -> None:
    kept = sessions(max_remembered=2)
    number = opened(kept, 0, 1)

    with pytest.raises(KafkaError, match="no room") as caught:
        kept.plan(request(number, 1, 2), speaks_of_ids=False)

    assert caught.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(kept), kept.remembered) == (0, 0)


def data(**fields: Any) -> PartitionData:
    fields = {"high_watermark": 5, "last_stable_offset": 5, "log_start_offset": 0, **fields}
    return PartitionData(partition_index=0, records=fields.pop("records", b""), **fields)


@pytest.mark.parametrize(
    ("fields", "is_news"),
    [
        ({}, False),
        ({"high_watermark": 6}, True),
        ({"last_stable_offset": 4}, True),
        ({"log_start_offset": 1}, True),
        ({"error_code": 6}, True),
        ({"records": b"x"}, True),
    ],
)
def test_what_moved_is_news(fields: dict[str, Any], is_news: bool) -> None:
    interest = Interest("t", FetchPartition(partition=0))
    interest.told(data())

    assert interest.has_news(data(**fields)) == is_news
