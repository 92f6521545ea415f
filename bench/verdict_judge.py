"""Decides from wire calls alone whether a consumer group has a problem.

Pure. Independent of the console's verdicts on purpose: its rules follow from what an operator has
to be paged for, which is that records wait and nothing will read them, or that what was read is
not committed. It abstains where both answers can be defended.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise, product, takewhile
from typing import Final

from gateway.kafka.values import Place

# What a rule looks back at. A rule that needs a longer history than there is does not apply.
UNREAD_S: Final = 60.0
SILENT_S: Final = 180.0
CHURN_S: Final = 180.0
LEVEL_S: Final = 120.0
FALLING_S: Final = 180.0
BEHIND_S: Final = 360.0
BEHIND_SLOWLY_S: Final = 600.0
REWOUND_S: Final = 300.0
ARRIVALS_S: Final = 240.0
RATES_S: Final = (20.0, 60.0)
MEMORY_S: Final = 900.0
# The sign of a problem, for as long as it may still pass: the judge abstains.
SIGN_S: Final = 60.0
# How many changes of membership are a problem within CHURN_S, and how many are a sign of one.
CHURNS: Final = 6
SIGNS_OF_CHURN: Final = 3
# A reader is level while what waits is at most this: it arrived within a moment, or is a handful.
LEVEL_RECORDS: Final = 10
LEVEL_ARRIVAL_S: Final = 5.0
# Growth counts when it is more than this.
GROWN_RECORDS: Final = 20
GROWN_ARRIVAL_S: Final = 10.0
# A window whose looks leave out more than this share of it does not count as observed.
UNSEEN_SHARE: Final = 0.15


class Opinion(Enum):
    PROBLEM = "problem"
    FINE = "fine"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One partition of a group at one moment."""

    committed: int | None
    start: int
    end: int
    is_owned: bool

    @property
    def waiting(self) -> int:
        """Return the records that are not committed; 0 if no commit says where to count from."""
        if self.committed is None:
            return 0
        return max(0, self.end - max(self.committed, self.start))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A group at one moment."""

    at_s: float
    members: frozenset[str]
    spots: Mapping[Place, Spot]

    @property
    def waiting(self) -> int:
        return sum(spot.waiting for spot in self.spots.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    opinion: Opinion
    reason: str


Looks = Sequence[Look]
Rule = Callable[[Looks], Ruling | None]


def ruling_of(looks: Looks) -> Ruling:
    """Return the answer of the first rule that has one; `looks` are in order of time."""
    for rule in RULES:
        if (ruling := rule(looks)) is not None:
            return ruling
    # What grew before they came is not their reading.
    present = _with_present_members(looks)
    for rule in RULES_OF_READING:
        if (ruling := rule(present)) is not None:
            return ruling
    return _open("neither level, nor falling, nor growing")


def remembered(looks: Looks, look: Look) -> list[Look]:
    """Return a history with one more look, without those that no rule reaches back to."""
    return [one for one in looks if one.at_s >= look.at_s - MEMORY_S] + [look]


def arrivals_of(looks: Looks) -> dict[str, tuple[float, float]]:
    """Return the lowest and highest rate of late, of each topic that was seen.

    Of minutes, and of shorter times, since a page may follow a rate that has just changed.
    """
    recent = _window(looks, ARRIVALS_S)
    if recent is None:
        return {}
    found: dict[str, list[float]] = {}
    for last, seconds in product(recent, RATES_S):
        some = [one for one in recent if last.at_s - seconds <= one.at_s <= last.at_s]
        if last.at_s - some[0].at_s >= seconds * (1 - UNSEEN_SHARE):
            for topic in {place.topic for place in last.spots}:
                found.setdefault(topic, []).append(_arrivals(some, topic))
    return {topic: (min(rates), max(rates)) for topic, rates in found.items()}


# --- the rules --------------------------------------------------------------------------------


def membership(looks: Looks) -> Ruling | None:
    """Judge a group whose members come and go: it spends its time rebalancing."""
    recent = _since(looks, CHURN_S)
    changes = sum(before.members != after.members for before, after in pairwise(recent))
    is_over = len({one.members for one in _since(looks, SIGN_S)}) == 1
    if changes >= CHURNS and not is_over:
        return _problem(f"its members changed {changes} times in {CHURN_S:g} s")
    if changes >= SIGNS_OF_CHURN:
        return _open(f"its members changed {changes} times in {CHURN_S:g} s")
    return None


def unread(looks: Looks) -> Ruling | None:
    """Judge a group without members: a problem as soon as a record waits."""
    last = looks[-1]
    if last.members:
        return None
    recent = _window(looks, UNREAD_S)
    if recent is None or any(one.members for one in recent):
        return _open("its last member left a moment ago")
    if all(one.waiting for one in recent):
        return _problem(f"no member, {last.waiting} records wait")
    if any(one.waiting for one in recent):
        return _open("no member, and records wait now and then")
    if any(spot.committed is None for spot in last.spots.values()):
        return _open("no member, and where it stopped is not known")
    return _fine("no member, and nothing waits")


def uncommitted(looks: Looks) -> Ruling | None:
    """Judge partitions that a member owns without a commit, while records arrive in them."""
    last = looks[-1]
    for seconds, answer in ((SILENT_S, _problem), (SIGN_S, _open)):
        recent = _window(looks, seconds)
        if recent is None:
            continue
        # What arrived in the first half has had the second half to be committed.
        halfway = recent[len(recent) // 2]
        found = [
            place
            for place in last.spots
            if all(_is_owned_bare(one, place) for one in recent)
            and halfway.spots[place].end > recent[0].spots[place].end
        ]
        if found:
            parts = f"{len(found)} of {len(last.spots)} partitions"
            return answer(f"{parts} owned without any commit for {seconds:g} s while records came")
    return None


def stuck(looks: Looks) -> Ruling | None:
    """Judge partitions whose committed offset stands still while records wait behind it."""
    for seconds, answer in ((SILENT_S, _problem), (SIGN_S, _open)):
        recent = _window(looks, seconds)
        if recent is None or not all(one.members for one in recent):
            continue
        for place, spot in looks[-1].spots.items():
            then = [one.spots.get(place) for one in recent]
            if spot.waiting and all(
                one is not None and one.committed == spot.committed and one.waiting for one in then
            ):
                words = f"{place.topic}-{place.partition} stays at {spot.committed}"
                return answer(f"{words} for {seconds:g} s, {spot.waiting} records wait")
    return None


def behind_slowly(looks: Looks) -> Ruling | None:
    """Judge a lag that never ends and is larger in the later half, however it moves within.

    One that falls again in the end is left to the other rules.
    """
    recent = _window(looks, BEHIND_SLOWLY_S)
    if recent is None:
        return None
    early, late = _parts(recent, 2)
    grew = _mean(late) - _mean(early)
    has_grown = min(late) > min(early) and grew > max(_much(recent), _mean(early) / 20)
    if min(early) <= _level(recent) or not has_grown:
        return None
    *_, former, latter = _parts(recent, 4)
    answer = _open if _mean(latter) < _mean(former) else _problem
    return answer(f"{_mean(early):.0f} waited, then {_mean(late):.0f}")


def rewound(looks: Looks) -> Ruling | None:
    """Abstain after a step back: a wish and a defect look alike."""
    recent = _since(looks, REWOUND_S)
    for before, after in pairwise(recent):
        for place, spot in after.spots.items():
            former = before.spots.get(place)
            if former is None or former.committed is None or spot.committed is None:
                continue
            if spot.committed < former.committed:
                return _open(f"{place.topic}-{place.partition} went back to {spot.committed}")
    return None


def behind(looks: Looks) -> Ruling | None:
    """Judge a lag whose lowest point rises from window to window, so that dips do not count.

    One that falls again meanwhile may be on its way to the end.
    """
    for seconds, answer in ((BEHIND_S, _problem), (BEHIND_S / 2, _open)):
        recent = _window(looks, seconds)
        if recent is None:
            continue
        lows = [min(part) for part in _parts(recent, 3)]
        if lows[0] < lows[1] < lows[2] and lows[2] - lows[0] > _much(recent):
            former, latter = _parts(_since(looks, 2 * SIGN_S), 2)
            given = _open if _mean(latter) < _mean(former) else answer
            return given(f"at least {lows[0]}, then {lows[1]}, then {lows[2]} waited")
    return None


def nothing(looks: Looks) -> Ruling | None:
    """Judge a group without a partition, such as that of a deleted topic."""
    recent = _window(looks, UNREAD_S)
    if recent is None or any(one.spots for one in recent):
        return None
    return _fine("there is nothing that it could read")


def level(looks: Looks) -> Ruling | None:
    recent = _window(looks, LEVEL_S)
    if recent is None:
        return _open("it has been watched for a moment")
    spots = looks[-1].spots.items()
    if any(_is_owned_bare(looks[-1], place) and spot.end > spot.start for place, spot in spots):
        return _open("a partition is owned, and no commit tells how far it was read")
    least = min(one.waiting for one in recent)
    if least <= _level(recent):
        return _fine(f"level: at least {least} waited, {looks[-1].waiting} now")
    return None


def falling(looks: Looks) -> Ruling | None:
    recent = _window(looks, FALLING_S)
    if recent is None:
        return None
    means = [_mean(part) for part in _parts(recent, 3)]
    if means[0] > means[1] > means[2] and means[0] - means[2] > means[0] / 50:
        return _fine(f"catches up: {means[0]:.0f}, then {means[2]:.0f} waited")
    return None


RULES: Final[Sequence[Rule]] = (membership, unread, nothing, uncommitted, stuck)
RULES_OF_READING: Final[Sequence[Rule]] = (behind_slowly, rewound, behind, level, falling)


# --- what they share --------------------------------------------------------------------------


def _problem(reason: str) -> Ruling:
    return Ruling(opinion=Opinion.PROBLEM, reason=reason)


def _fine(reason: str) -> Ruling:
    return Ruling(opinion=Opinion.FINE, reason=reason)


def _open(reason: str) -> Ruling:
    return Ruling(opinion=Opinion.OPEN, reason=reason)


def _since(looks: Looks, seconds: float) -> Looks:
    return [one for one in looks if one.at_s >= looks[-1].at_s - seconds]


def _with_present_members(looks: Looks) -> Looks:
    """Return the last looks that all have the members of now."""
    members = looks[-1].members
    return list(takewhile(lambda one: one.members == members, reversed(looks)))[::-1]


def _window(looks: Looks, seconds: float) -> Looks | None:
    """Return the looks of the last so many seconds, if they cover them."""
    recent = _since(looks, seconds)
    is_covered = looks[-1].at_s - recent[0].at_s >= seconds * (1 - UNSEEN_SHARE)
    return recent if is_covered else None


def _parts(looks: Looks, count: int) -> list[list[int]]:
    """Return what waited, in so many parts of equal length in time, each with a look at least."""
    first_s, last_s = looks[0].at_s, looks[-1].at_s
    parts: list[list[int]] = [[] for _ in range(count)]
    for one in looks:
        share = (one.at_s - first_s) / (last_s - first_s)
        parts[min(count - 1, int(share * count))].append(one.waiting)
    return [part or [looks[-1].waiting] for part in parts]


def _mean(waited: Sequence[int]) -> float:
    return sum(waited) / len(waited)


def _arrivals(looks: Looks, topic: str = "") -> float:
    """Return the records a second that came to partitions seen at both ends of a window."""
    first, last = looks[0], looks[-1]
    grown = (
        spot.end - first.spots[place].end
        for place, spot in last.spots.items()
        if place in first.spots and place.topic == (topic or place.topic)
    )
    return max(0, sum(grown)) / (last.at_s - first.at_s)


def _level(looks: Looks) -> float:
    return max(LEVEL_RECORDS, LEVEL_ARRIVAL_S * _arrivals(looks))


def _much(looks: Looks) -> float:
    return max(GROWN_RECORDS, GROWN_ARRIVAL_S * _arrivals(looks))


def _is_owned_bare(look: Look, place: Place) -> bool:
    spot = look.spots.get(place)
    return spot is not None and spot.is_owned and spot.committed is None
