"""Updates out of an agent's messages, and a reader that is slow to take them."""

import pytest

from brokers.cluster.changes import Change
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.link import (
    ChangeFrame,
    FrameReader,
    MalformedFrame,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotPart,
    decode_from_agent,
    encode_change,
    encode_snapshot,
)
from brokers.cluster.store import Update
from brokers.cluster.updates import Assembly, Backlog, FeedMessage
from tests.fakes.twin import Twin


def twin_with_topics(number: int = 3) -> Twin:
    twin = Twin()
    twin.register_now()
    for index in range(number):
        twin.create_topic(f"topic-{index}", partitions=300)
    return twin


def messages(data: bytes) -> list[FeedMessage]:
    found: list[FeedMessage] = []
    for message in FrameReader(decode_from_agent).feed(data):
        assert isinstance(message, SnapshotBegin | SnapshotPart | SnapshotEnd | ChangeFrame)
        found.append(message)
    return found


def snapshot(twin: Twin) -> list[FeedMessage]:
    return messages(b"".join(encode_snapshot(twin.image)))


def changes_of(twin: Twin, number: int) -> list[Change]:
    made: list[Change] = []
    for index in range(number):
        before = twin.image.position
        twin.create_topic(f"more-{index}")
        change = twin.next_update(before)
        assert isinstance(change, Change)
        made.append(change)
    return made


def taken(assembly: Assembly, *parts: FeedMessage) -> list[Update | None]:
    return [step for part in parts for step in assembly.take(part)]


def test_a_snapshot_is_whole_with_its_end() -> None:
    twin = twin_with_topics()

    steps = taken(Assembly(), *snapshot(twin))

    assert steps[-1] == twin.image
    # One place to pause for each piece: a broker, and two for each topic.
    assert steps[:-1] == [None] * 7


def test_a_change_is_whole_with_its_last_frame() -> None:
    (change,) = changes_of(twin_with_topics(), 1)
    (whole,) = messages(encode_change(change))
    assert isinstance(whole, ChangeFrame)
    halves = [
        ChangeFrame(position=whole.position, records=whole.records, is_last=False),
        ChangeFrame(position=whole.position, records=(), is_last=True),
    ]

    steps = taken(Assembly(), *halves)

    assert [step for step in steps if step is not None] == [change]


def test_parts_out_of_their_place_are_malformed() -> None:
    begin, part, end = snapshot(twin_with_topics())
    (frame,) = messages(encode_change(changes_of(twin_with_topics(), 1)[0]))
    assert isinstance(frame, ChangeFrame)
    half = ChangeFrame(position=frame.position, records=frame.records, is_last=False)
    other = ChangeFrame(position=Position(99), records=())

    for wrong in (
        [part],
        [end],
        [begin, frame],
        [begin, part, part],
        [begin, SnapshotEnd(position=Position(99))],
        [half, other],
    ):
        with pytest.raises(MalformedFrame):
            taken(Assembly(), *wrong)


def test_a_change_that_never_ends_is_malformed() -> None:
    (frame,) = messages(encode_change(changes_of(twin_with_topics(), 1)[0]))
    assert isinstance(frame, ChangeFrame)
    endless = ChangeFrame(position=frame.position, records=frame.records * 1000, is_last=False)

    with pytest.raises(MalformedFrame, match="10000 records"):
        taken(Assembly(), *[endless] * 11)


def test_a_backlog_gives_what_was_put_in_order() -> None:
    twin = twin_with_topics()
    backlog = Backlog(Position())

    backlog.put(twin.image)
    changes = changes_of(twin, 2)
    for change in changes:
        backlog.put(change)

    assert [backlog.take() for _ in range(4)][1:] == [*changes, None]
    assert backlog.position == twin.image.position


def test_a_change_that_leaves_a_gap_is_malformed() -> None:
    twin = twin_with_topics()
    backlog = Backlog(twin.image.position)
    _, second = changes_of(twin, 2)

    with pytest.raises(MalformedFrame, match="came after"):
        backlog.put(second)


def test_a_reader_that_is_too_slow_gets_the_image_at_last() -> None:
    twin = twin_with_topics()
    backlog = Backlog(Position(), most=4)

    backlog.put(twin.image)
    for change in changes_of(twin, 10):
        assert not backlog.is_full
        backlog.put(change)

    updates = []
    while (update := backlog.take()) is not None:
        updates.append(update)
    assert len(updates) <= 4
    assert isinstance(updates[0], ClusterImage)
    assert updates[-1].position == twin.image.position


def test_a_whole_image_makes_what_waited_superfluous() -> None:
    twin = twin_with_topics()
    backlog = Backlog(twin.image.position)
    for change in changes_of(twin, 2):
        backlog.put(change)

    backlog.put(twin.image)

    assert [backlog.take(), backlog.take()] == [twin.image, None]


def test_without_an_image_a_backlog_can_only_be_full() -> None:
    twin = twin_with_topics()
    backlog = Backlog(twin.image.position, most=2)

    for change in changes_of(twin, 2):
        backlog.put(change)

    assert backlog.is_full
    backlog.take()
    assert not backlog.is_full


def test_backlog_after_a_reset_accepts_only_an_image() -> None:
    twin = twin_with_topics()
    backlog = Backlog(twin.image.position, most=2)
    first, second, third = changes_of(twin, 3)
    backlog.put(first)
    backlog.put(second)

    backlog.begin_anew()
    with pytest.raises(MalformedFrame, match="came after"):
        backlog.put(third)
    backlog.put(twin.image)

    assert [backlog.take(), backlog.take()] == [twin.image, None]
