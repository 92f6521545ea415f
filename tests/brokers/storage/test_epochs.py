"""The history of leader epochs: Kafka's rules, and a brute-force twin that must agree."""

import random
from pathlib import Path

import pytest

from brokers.storage.epochs import EpochCache
from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles
from tests.scale import count

UNDEFINED = (-1, -1)


def cache(*entries: tuple[int, int]) -> EpochCache:
    made = EpochCache()
    for epoch, start in entries:
        made.assign(epoch, start)
    return made


def test_an_empty_cache_knows_nothing() -> None:
    empty = cache()

    assert (empty.latest, empty.earliest) == (-1, None)
    assert empty.end_offset_for(0, 10) == UNDEFINED
    assert empty.epoch_for_offset(0) is None


def test_the_latest_epoch_ends_where_the_log_ends() -> None:
    assert cache((2, 0), (3, 5)).end_offset_for(3, 9) == (3, 9)


def test_an_older_epoch_ends_where_the_next_one_begins() -> None:
    assert cache((2, 0), (3, 5), (7, 8)).end_offset_for(3, 9) == (3, 8)


def test_an_epoch_in_a_gap_is_answered_by_the_one_before_it() -> None:
    """KIP-279: the follower then looks for its own end of that epoch."""
    assert cache((2, 0), (3, 5), (7, 8)).end_offset_for(5, 9) == (3, 8)


def test_an_epoch_older_than_all_ended_where_the_oldest_begins() -> None:
    assert cache((2, 4), (3, 5)).end_offset_for(1, 9) == (1, 4)


@pytest.mark.parametrize("epoch", [-1, 4])
def test_an_undefined_or_future_epoch_has_no_answer(epoch: int) -> None:
    assert cache((2, 4), (3, 5)).end_offset_for(epoch, 9) == UNDEFINED


def test_assigning_the_same_epoch_again_keeps_its_first_offset() -> None:
    history = cache((2, 4))

    assert not history.assign(2, 9)
    assert history.entries() == [(2, 4)]


def test_a_contradicting_assignment_removes_what_it_contradicts() -> None:
    history = cache((1, 0), (2, 4), (5, 8), (6, 12))

    history.assign(5, 6)

    assert history.entries() == [(1, 0), (2, 4), (5, 6)]
    assert history.latest == 5


def test_epoch_without_records_is_replaced_by_the_next() -> None:
    assert cache((1, 0), (2, 4), (3, 4)).entries() == [(1, 0), (3, 4)]


def test_truncating_the_end_forgets_epochs_that_began_there() -> None:
    history = cache((1, 0), (2, 4), (3, 8))

    history.truncate_from_end(4)

    assert history.entries() == [(1, 0)]
    assert history.latest == 1


def test_truncating_the_start_keeps_the_epoch_that_covers_it() -> None:
    history = cache((1, 0), (2, 4), (3, 8))

    history.truncate_from_start(6)

    assert history.entries() == [(2, 6), (3, 8)]


def test_truncating_at_an_epochs_own_start_changes_nothing_of_it() -> None:
    history = cache((1, 0), (2, 4), (3, 8))

    history.truncate_from_start(4)

    assert history.entries() == [(2, 4), (3, 8)]


def test_dirt_is_noted_by_changes_only(tmp_path: Path) -> None:
    history = cache((1, 0))
    history.save(LocalFiles(), str(tmp_path / "checkpoint"))
    assert not history.is_dirty

    history.assign(1, 5)
    history.truncate_from_end(7)
    history.truncate_from_start(0)
    assert not history.is_dirty

    history.truncate_from_start(3)
    assert history.is_dirty


def test_the_checkpoint_is_text_exactly_as_kafka_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"

    cache((0, 0), (3, 77)).save(LocalFiles(), str(path))

    assert path.read_bytes() == b"0\n2\n0 0\n3 77\n"
    assert EpochCache.load(LocalFiles(), str(path)).entries() == [(0, 0), (3, 77)]


def test_a_missing_checkpoint_is_an_empty_history(tmp_path: Path) -> None:
    assert EpochCache.load(LocalFiles(), str(tmp_path / "none")).entries() == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n1\n",
        b"0\n1\n3\n",
        b"0\n1\n3 4 5\n",
        b"0\n1\n-1 0\n",
        b"0\n1\n2147483648 0\n",
        b"0\n2\n3 4\n3 5\n",  # an epoch twice
        b"0\n2\n3 4\n5 4\n",  # no records between two epochs
        b"0\n2\n3 4\n2 9\n",
        b"\xff\xfe",
    ],
)
def test_a_damaged_checkpoint_is_corrupt(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(content)

    with pytest.raises(StorageCorrupt):
        EpochCache.load(LocalFiles(), str(path))


class Twin:
    """The rules written down as a search over the whole list, as slow as they read."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int]] = []

    def assign(self, epoch: int, start: int) -> None:
        if self.entries and self.entries[-1][0] == epoch and start >= self.entries[-1][1]:
            return
        self.entries = [(e, s) for e, s in self.entries if e < epoch and s < start]
        self.entries.append((epoch, start))

    def truncate_from_end(self, offset: int) -> None:
        self.entries = [(e, s) for e, s in self.entries if s < offset]

    def truncate_from_start(self, offset: int) -> None:
        passed = [(e, s) for e, s in self.entries if s <= offset]
        rest = [(e, s) for e, s in self.entries if s > offset]
        self.entries = [(passed[-1][0], offset), *rest] if passed else rest

    def epoch_for_offset(self, offset: int) -> int | None:
        return max((e for e, s in self.entries if s <= offset), default=None)

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        later = [s for e, s in self.entries if e > epoch]
        upto = [e for e, s in self.entries if e <= epoch]
        if self.entries and epoch == self.entries[-1][0]:
            return epoch, log_end
        if epoch < 0 or not later:
            return UNDEFINED
        return (upto[-1] if upto else epoch), later[0]


@pytest.mark.parametrize("seed", range(10))
def test_the_cache_agrees_with_a_search_over_all_entries(seed: int) -> None:
    rng = random.Random(seed)
    history, twin = EpochCache(), Twin()
    for _ in range(count(200, 500, long=10_000)):
        epoch, offset = rng.randrange(12), rng.randrange(60)
        action = rng.choice(["assign", "assign", "truncate_from_end", "truncate_from_start"])
        arguments = (epoch, offset) if action == "assign" else (offset,)

        getattr(history, action)(*arguments)
        getattr(twin, action)(*arguments)

        assert history.entries() == twin.entries
        assert history.latest == (twin.entries[-1][0] if twin.entries else -1)
        asked = rng.randrange(-1, 13)
        assert history.end_offset_for(asked, 99) == twin.end_offset_for(asked, 99)
        assert history.epoch_for_offset(offset) == twin.epoch_for_offset(offset)
