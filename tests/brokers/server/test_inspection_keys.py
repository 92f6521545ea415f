"""Which key opens which page, before, during and after a rotation."""

from pathlib import Path

from brokers.key_files import LOOK_SECONDS, KeyFile, write_keys
from brokers.server.inspection_keys import InspectionKeys
from tests.fakes.clock import ManualClock


class Door:
    """The keys of two files, and a clock that moves by hand."""

    def __init__(self, folder: Path) -> None:
        self.file, self.metrics = folder / "inspection", folder / "metrics"
        self.clock = ManualClock()
        self.keys = InspectionKeys(
            every_page=KeyFile(self.file, monotonic=self.clock.monotonic),
            metrics=KeyFile(self.metrics, monotonic=self.clock.monotonic),
        )

    def statuses(self, *keys: str, path: str = "/feed") -> list[int]:
        """What a page answers to each key."""
        answers = [self.keys.refusal(path, [f"Bearer {key}".encode()]) for key in keys]
        return [200 if answer is None else answer[0] for answer in answers]

    def rotate(self, *keys: str) -> None:
        write_keys(self.file, keys)
        self.clock.advance(int(1000 * LOOK_SECONDS))


def test_two_keys_are_valid_at_a_time_and_a_rotation_needs_no_restart(tmp_path: Path) -> None:
    door = Door(tmp_path)
    seen = []

    for keys in (("1.a",), ("1.a", "2.b"), ("2.b", "1.a"), ("2.b", "3.c"), ("3.c", "2.b")):
        door.rotate(*keys)
        seen.append(door.statuses("1.a", "2.b", "3.c"))

    assert seen == [
        [200, 401, 401],
        [200, 200, 401],
        [200, 200, 401],
        [401, 200, 200],
        [401, 200, 200],
    ]


def test_before_there_is_a_key_nobody_is_let_in_and_the_first_is_seen_at_once(
    tmp_path: Path,
) -> None:
    door = Door(tmp_path)
    before = door.statuses("1.a", "")

    write_keys(door.file, ("1.a",))

    assert before == [503, 503]
    assert door.statuses("1.a", "") == [200, 401]


def test_a_key_for_metrics_opens_metrics_only(tmp_path: Path) -> None:
    door = Door(tmp_path)
    door.rotate("1.a")
    write_keys(door.metrics, ("1.m",))

    assert door.statuses("1.m", "1.a", path="/metrics") == [200, 200]
    assert door.statuses("1.m", path="/feed") == [403]
    assert door.statuses("1.m", path="/inspect/times") == [403]


def test_a_key_is_shown_once_and_whole(tmp_path: Path) -> None:
    door = Door(tmp_path)
    door.rotate("1.a")

    for shown in ([], [b"Bearer 1.a", b"Bearer 1.a"], [b"1.a"], [b"bearer 1.a"], [b"Bearer 1.a "]):
        answer = door.keys.refusal("/feed", shown)
        assert answer is not None
        assert answer[0] == 401
