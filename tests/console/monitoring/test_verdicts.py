"""The verdicts on groups, each from a scripted history of commits."""

import pytest

from console.monitoring.history import History
from console.monitoring.verdicts import (
    EVERY_RULE,
    WINDOW_MS,
    WORDS,
    Eta,
    Rates,
    Reader,
    Verdict,
    eta,
    is_loss_ahead,
    judge,
)

T0 = 1_700_000_000_000
DAY_MS = 86_400_000
# Seconds, committed offset, end of the partition; a line without an offset is an ordinary look.
Script = list[tuple[int, int | None, int]]


def told(script: Script, *, loss: bool = False) -> Verdict:
    return judged(script, loss=loss)[0]


def judged(script: Script, *, loss: bool = False) -> tuple[Verdict, str]:
    """Play a script and judge at its last line: the verdict, and the key of its rule."""
    history = History()
    committed, commit_ms = script[0][1] or 0, T0
    at = T0
    for second, offset, end in script:
        at = T0 + second * 1000
        if offset is not None:
            committed, commit_ms = offset, at
        history.look(0, committed=committed, commit_ms=commit_ms, end=end, now_ms=at)
    rule = judge(history.evidence(0, is_loss_ahead=loss), at)
    return rule.verdict, rule.key


def every(seconds: int, until: int) -> range:
    return range(0, until + 1, seconds)


def test_a_group_without_lag_is_ok_however_long_it_is_silent() -> None:
    assert told([(0, 10, 10), (7200, None, 10)]) is Verdict.OK


def test_a_group_that_reached_the_end_within_the_window_is_ok() -> None:
    assert told([(0, 0, 100), (300, 200, 200), (400, 250, 300)]) is Verdict.OK


def test_first_seen_behind_is_unknown_until_its_commits_were_watched() -> None:
    assert judged([(0, 0, 100), (60, None, 200)]) == (Verdict.UNKNOWN, "watched too short")


@pytest.mark.parametrize("commits_every_s", [5, 30, 60, 90])
def test_lag_that_grows_for_minutes_is_falling_behind_whatever_its_dips(
    commits_every_s: int,
) -> None:
    script: Script = [
        (s, s * 3 if s % commits_every_s == 0 else None, 1000 + s * 5) for s in every(5, 720)
    ]

    assert judged(script) == (Verdict.FALLING_BEHIND, "grows")
    assert told(script[: 120 // 5]) is not Verdict.FALLING_BEHIND


@pytest.mark.parametrize("begins_s", range(300, 345, 5))
def test_a_rise_is_falling_behind_before_five_minutes_have_passed(begins_s: int) -> None:
    """Wherever in a window of the history it begins, with commits in batches of 20 s."""
    script: Script = []
    for s in every(5, begins_s + 300):
        read = s * 8 - max(0, s - begins_s) * 3 if s % 20 == 0 else None
        script.append((s, read, s * 8))

    assert told([look for look in script if look[0] <= begins_s + 180]) is not (
        Verdict.FALLING_BEHIND
    )
    assert told(script) is Verdict.FALLING_BEHIND


def test_slow_drift_is_falling_behind_after_some_time() -> None:
    script: Script = [(s, s * 98 + 37 * (s % 7), 1000 + s * 100) for s in every(5, 1800)]

    assert told(script[: 200 // 5]) is not Verdict.FALLING_BEHIND
    assert told(script) is Verdict.FALLING_BEHIND


def test_lag_that_stays_the_same_is_ok() -> None:
    script: Script = [(s, s * 10 + (s % 20), 2000 + s * 10) for s in every(5, 600)]

    assert judged(script) == (Verdict.OK, "steady")


def test_end_of_a_rise_is_seen_within_three_minutes() -> None:
    rise: Script = [(s, s * 5, s * 10) for s in every(5, 600)]
    fall: Script = [(s, 3000 + (s - 600) * 15, s * 10) for s in range(605, 785, 5)]

    assert told(rise) is Verdict.FALLING_BEHIND
    assert judged([*rise, *fall]) == (Verdict.CATCHING_UP, "falls")


def test_group_that_reads_what_has_waited_is_catching_up_and_not_falling_behind() -> None:
    before: Script = [(s, s * 10, s * 10) for s in every(5, 300)]
    after: Script = [(s, 3000 + (s - 900) * 20, s * 10) for s in range(900, 1080, 5)]

    for length in range(2, len(after)):
        assert told([*before, (600, None, 6000), *after[:length]]) in {
            Verdict.UNKNOWN,
            Verdict.CATCHING_UP,
        }


def test_offsets_that_are_set_while_nothing_reads_are_no_progress() -> None:
    history = History()
    history.look(0, committed=10, commit_ms=T0, end=10, now_ms=T0)
    gone = Reader(is_there=False, gone_ms=T0)
    minutes = 60_000
    history.look(0, committed=10, commit_ms=T0, end=500, now_ms=T0 + minutes)
    verdict = judge(history.evidence(0, reader=gone), T0 + minutes).verdict
    assert verdict is Verdict.NO_MEMBERS

    history.commit(0, committed=300, commit_ms=T0 + 2 * minutes, is_reading=False)
    history.look(0, committed=300, commit_ms=T0 + 2 * minutes, end=500, now_ms=T0 + 2 * minutes)

    evidence = history.evidence(0, reader=gone)
    assert (evidence.progress_ms, evidence.pause_ms) == (T0, 0)
    assert judge(evidence, T0 + 4 * minutes).key == "unread"


def test_a_group_that_commits_the_same_offset_again_is_stalled() -> None:
    assert told([(s, 50, 100 + s) for s in every(5, 600)]) is Verdict.STALLED


def test_a_group_that_commits_nothing_while_records_wait_is_stopped() -> None:
    script: Script = [(0, 100, 100), (5, 110, 110), (10, None, 120), (300, None, 500)]

    assert told(script) is Verdict.STOPPED


def test_a_group_that_commits_every_ten_minutes_is_not_stopped_between_its_commits() -> None:
    script: Script = [(s, s, s + 900) for s in every(600, 3600)]

    assert told([*script, (4100, None, 5000)]) is not Verdict.STOPPED
    assert told([*script, (5000, None, 6000)]) is Verdict.STOPPED


def test_a_group_that_reads_to_the_end_every_ten_minutes_is_not_stopped_between_its_commits() -> (
    None
):
    script: Script = []
    for s in every(600, 3600):
        script += [(s, s, s), (s + 5, None, s + 10), (s + 300, None, s + 300)]

    assert told([*script, (4100, None, 4200)]) is not Verdict.STOPPED
    assert told([*script, (5000, None, 5000)]) is Verdict.STOPPED


@pytest.mark.parametrize("seconds_behind", [0, 3])
def test_an_idle_night_is_no_pause_and_who_dies_after_it_is_stopped(seconds_behind: int) -> None:
    evening: Script = [(s, s, s) for s in every(5, 600)]
    morning: Script = [(30_000, None, 700)] * (seconds_behind > 0)
    at = 30_000 + seconds_behind
    morning += [(at, 700, 700), (at + 5, None, 800)]

    assert told([*evening, *morning, (at + 100, None, 900)]) is Verdict.OK
    assert told([*evening, *morning, (at + 200, None, 900)]) is Verdict.STOPPED


def test_a_group_whose_offset_went_back_is_rewound_until_it_has_recovered() -> None:
    back: Script = [(0, 1000, 1000), (5, 10, 1000)]
    behind: Script = [(s, s, 1000) for s in range(10, 400, 5)]

    assert told(back + behind) is Verdict.REWOUND
    assert told([*back, *behind, (400, 1000, 1200), (405, 1010, 1205)]) is Verdict.OK


def test_loss_ahead_comes_before_every_other_verdict() -> None:
    assert told([(0, 0, 100), (600, None, 200)], loss=True) is Verdict.LOSS_AHEAD


def test_loss_is_not_ahead_of_a_short_retention_after_a_moment_of_lag() -> None:
    assert not is_loss_ahead(None, lag=5, lag_ms=1_000, retention_ms=600_000)
    assert is_loss_ahead(None, lag=5, lag_ms=301_000, retention_ms=600_000)


def test_loss_is_not_ahead_of_a_young_record_however_uncertain_the_rates_are() -> None:
    days_25 = Eta(23.0, 25 * 86_400.0)

    assert not is_loss_ahead(days_25, lag=130, lag_ms=1_400, retention_ms=7 * 86_400_000)
    assert is_loss_ahead(days_25, lag=130, lag_ms=4 * 86_400_000, retention_ms=7 * 86_400_000)


def test_a_partition_whose_end_nobody_tells_is_unknown() -> None:
    history = History()
    history.look(0, committed=5, commit_ms=T0, end=None, now_ms=T0)

    assert judge(history.evidence(0), T0 + 10 * WINDOW_MS).verdict is Verdict.UNKNOWN


def test_every_verdict_has_rules_that_each_name_one_condition() -> None:
    assert {rule.verdict for rule in EVERY_RULE} == set(Verdict) == set(WORDS)
    assert len({rule.key for rule in EVERY_RULE}) == len(EVERY_RULE)
    assert all(rule.meaning.endswith(".") for rule in EVERY_RULE)
    assert not any(" or " in rule.meaning for rule in EVERY_RULE if rule.verdict is Verdict.OK)


def test_the_time_to_catch_up_is_a_range_of_both_rates() -> None:
    assert eta(600, Rates(20, 10), Rates(16, 10)) == Eta(60 * 0.65 - 5, 100 * 1.35 + 5)
    assert eta(600, Rates(20, 10), Rates(10, 10)) == Eta(60 * 0.65 - 5, None)
    assert eta(6, Rates(20, 10), Rates(20, 10)) == Eta(0, 0.6 * 1.35 + 5)
    assert eta(600, Rates(5, 10), Rates(5, 10)) is None
    assert eta(0, Rates(0, 10), Rates(0, 10)) == Eta(0, 0)


@pytest.mark.parametrize(
    ("catches_up", "age_ms", "is_ahead"),
    [
        (Eta(3600, 7200), 0, False),
        (Eta(3600, 7200), DAY_MS - 3_600_000, True),
        (None, 0, False),
        (None, DAY_MS - 60_000, True),
    ],
)
def test_loss_is_ahead_where_retention_is_faster_than_the_group(
    catches_up: Eta | None, age_ms: int, *, is_ahead: bool
) -> None:
    assert is_loss_ahead(catches_up, lag=5, lag_ms=age_ms, retention_ms=DAY_MS) is is_ahead
    assert not is_loss_ahead(catches_up, lag=5, lag_ms=age_ms, retention_ms=-1)
    assert not is_loss_ahead(catches_up, lag=5, lag_ms=None, retention_ms=DAY_MS)
