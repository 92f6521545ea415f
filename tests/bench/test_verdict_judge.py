"""The judge of groups, by short series of what wire calls show."""

from collections.abc import Callable, Sequence

import pytest

from bench.verdict_judge import Look, Opinion, Spot, arrivals_of, remembered, ruling_of
from gateway.kafka.values import Place

EVERY_S = 5
PLACES = [Place(topic="orders", partition=number) for number in range(2)]
ONE = frozenset({"member"})
NONE: frozenset[str] = frozenset()

# Seconds -> members, and committed and end of each partition.
Course = Callable[[int], tuple[frozenset[str], Sequence[tuple[int | None, int]]]]


def judged(course: Course, minutes: int) -> Opinion:
    looks: list[Look] = []
    for at_s in range(0, minutes * 60 + 1, EVERY_S):
        members, offsets = course(at_s)
        spots = {
            place: Spot(committed=committed, start=0, end=end, is_owned=bool(members))
            for place, (committed, end) in zip(PLACES, offsets, strict=False)
        }
        looks = remembered(looks, Look(at_s=at_s, members=members, spots=spots))
    return ruling_of(looks).opinion


def sawtooth(at_s: int) -> int:
    """Return what a reader has committed that keeps up for half of each 90 seconds."""
    return 10 * (at_s - max(0, at_s % 90 - 45))


COURSES: dict[str, tuple[Course, int, Opinion]] = {
    "level": (lambda s: (ONE, [(10 * s, 10 * s)]), 5, Opinion.FINE),
    "level_in_batches": (lambda s: (ONE, [(10 * (s // 30 * 30), 10 * s)]), 5, Opinion.FINE),
    "a_sawtooth": (lambda s: (ONE, [(sawtooth(s), 10 * s)]), 10, Opinion.FINE),
    "behind": (lambda s: (ONE, [(6 * s, 10 * s)]), 7, Opinion.PROBLEM),
    "behind_in_batches": (lambda s: (ONE, [(6 * (s // 30 * 30), 10 * s)]), 7, Opinion.PROBLEM),
    "behind_for_a_moment": (lambda s: (ONE, [(6 * s, 10 * s)]), 4, Opinion.OPEN),
    "behind_and_now_catching_up": (
        lambda s: (ONE, [(6 * s + 12 * max(0, s - 410), 10 * s)]),
        8,
        Opinion.OPEN,
    ),
    "catching_up": (lambda s: (ONE, [(20 * s, 9_000 + 10 * s)]), 5, Opinion.FINE),
    "catching_up_with_a_new_member": (
        lambda s: (ONE, [(20 * (s - 400), 50 * 400)]) if s > 400 else (NONE, [(0, 50 * s)]),
        10,
        Opinion.FINE,
    ),
    "a_new_member_on_an_old_lag": (
        lambda s: (ONE, [(20 * (s - 400), 50 * 400)]) if s > 400 else (NONE, [(0, 50 * s)]),
        8,
        Opinion.OPEN,
    ),
    "steadily_late": (lambda s: (ONE, [(10 * s, 9_000 + 10 * s)]), 9, Opinion.OPEN),
    "never_committed": (lambda s: (ONE, [(None, 10 * s)]), 4, Opinion.PROBLEM),
    "never_committed_and_nothing_comes": (lambda s: (ONE, [(None, 7)]), 4, Opinion.OPEN),
    "partly_committed": (lambda s: (ONE, [(9 * s, 9 * s), (None, 9 * s)]), 4, Opinion.PROBLEM),
    "stuck_in_one_partition": (
        lambda s: (ONE, [(10 * s, 10 * s), (40, 50 + s)]),
        4,
        Opinion.PROBLEM,
    ),
    "no_member": (lambda s: (NONE, [(0, 10 + s)]), 2, Opinion.PROBLEM),
    "no_member_and_offsets_are_set": (
        lambda s: (NONE, [(s // 45 * 450, 30 + 10 * s)]),
        3,
        Opinion.PROBLEM,
    ),
    "no_member_and_nothing_waits": (lambda s: (NONE, [(10, 10)]), 2, Opinion.FINE),
    "members_come_and_go": (
        lambda s: (frozenset({str(s // 12)}), [(10 * s, 10 * s)]),
        4,
        Opinion.PROBLEM,
    ),
    "members_came_and_went_until_a_minute_ago": (
        lambda s: (frozenset({str(min(s, 170) // 12)}), [(10 * s, 10 * s)]),
        4,
        Opinion.OPEN,
    ),
    "one_restart": (
        lambda s: (frozenset({str(s // 200)}), [(10 * s, 10 * s)]),
        6,
        Opinion.FINE,
    ),
    "set_back": (lambda s: (ONE, [(10 * s if s < 500 else 0, 10 * s)]), 9, Opinion.OPEN),
    "no_topic_any_more": (lambda s: (ONE, []), 2, Opinion.FINE),
}


@pytest.mark.parametrize("course", COURSES)
def test_a_series_has_its_opinion(course: str) -> None:
    offsets, minutes, opinion = COURSES[course]

    assert judged(offsets, minutes) is opinion


def test_a_gap_in_the_series_is_not_judged_across() -> None:
    spot = Spot(committed=5, start=0, end=90, is_owned=True)
    looks = [Look(at_s=at_s, members=ONE, spots={PLACES[0]: spot}) for at_s in (0.0, 400.0)]

    assert ruling_of(looks[1:]).opinion is Opinion.OPEN


def test_what_no_rule_reaches_back_to_is_forgotten() -> None:
    looks: list[Look] = []
    for at_s in range(0, 3_000, EVERY_S):
        looks = remembered(looks, Look(at_s=at_s, members=ONE, spots={}))

    assert len(looks) < 200


def test_arrivals_are_the_range_of_the_last_minutes() -> None:
    looks = [
        Look(
            at_s=at_s,
            members=ONE,
            spots={PLACES[0]: Spot(committed=0, start=0, end=6 * min(at_s, 300), is_owned=True)},
        )
        for at_s in range(0, 401, EVERY_S)
    ]

    assert arrivals_of(looks) == {"orders": (0.0, 6.0)}
    assert arrivals_of(looks[:10]) == {}


def test_arrivals_follow_a_rate_that_has_just_changed() -> None:
    looks = [
        Look(
            at_s=at_s,
            members=ONE,
            spots={
                PLACES[0]: Spot(
                    committed=0, start=0, end=60 * at_s - 50 * max(0, at_s - 370), is_owned=True
                )
            },
        )
        for at_s in range(0, 401, EVERY_S)
    ]

    assert arrivals_of(looks) == {"orders": (10.0, 60.0)}
