"""What counts as a contradiction between pages, judge and scripts, and from when on."""

from dataclasses import replace

import pytest

from bench.verdict_comparison import (
    ALARM,
    DIFFER,
    GREEN,
    JUDGE,
    NUMBER,
    PAGE,
    SCRIPT,
    SILENT,
    WORDS,
    Comparison,
    Note,
)
from bench.verdict_judge import Opinion, Ruling
from bench.verdict_pages import Mark, Sight, Sights

FINE, OPEN, PROBLEM = Opinion.FINE, Opinion.OPEN, Opinion.PROBLEM


def mark(colour: str, words: str = "records wait") -> Mark:
    return Mark(colour=colour, verdict=colour, words=words)


def sight(colour: str, words: str = "3 read") -> Sight:
    told = mark(colour, words)
    return Sight(listed=told, own=told, in_need=told if colour == "bad" else None)


def note(at_s: float, seen: Sight, *, judged: Opinion = OPEN, truth: Opinion = OPEN) -> Note:
    ruling = Ruling(opinion=judged, reason="its figures")
    return Note(at_s=at_s, group="billing", phase="level", truth=truth, ruling=ruling, sight=seen)


def found(*notes: Note) -> list[tuple[str, str, float, float]]:
    comparison = Comparison()
    for one in notes:
        comparison.add(one)
    return [(one.kind, one.witness, one.first_s, one.last_s) for one in comparison.contradictions]


def test_a_page_that_stays_green_over_a_problem_is_found_after_grace() -> None:
    notes = [note(at_s, sight("ok"), judged=PROBLEM) for at_s in range(0, 201, 20)]

    assert found(*notes) == [(GREEN, JUDGE, 120, 200)]


def test_an_alarm_may_take_as_long_as_its_grace() -> None:
    late = [note(at_s, sight("ok" if at_s < 300 else "bad"), truth=PROBLEM) for at_s in (0, 280)]

    assert found(*late, note(300, sight("bad"), truth=PROBLEM)) == []


def test_an_alarm_that_stays_without_a_problem_is_found_by_judge_and_script() -> None:
    notes = [note(at_s, sight("bad"), judged=FINE, truth=FINE) for at_s in (0, 100, 180)]

    assert found(*notes) == [(ALARM, JUDGE, 180, 180), (ALARM, SCRIPT, 180, 180)]


def test_a_page_may_know_the_end_of_a_problem_before_the_judge() -> None:
    colours = {0: "bad", 200: "bad", 220: "ok", 260: "ok"}
    notes = [note(at_s, sight(colour), judged=PROBLEM) for at_s, colour in colours.items()]

    assert found(*notes) == []
    assert found(*notes, note(280, sight("ok"), judged=PROBLEM)) == [(GREEN, JUDGE, 280, 280)]


def test_an_alarm_of_one_look_is_an_alarm() -> None:
    colours = {0: "ok", 200: "bad", 220: "ok"}
    notes = [note(at_s, sight(colour), judged=FINE) for at_s, colour in colours.items()]

    assert found(*notes) == [(ALARM, JUDGE, 200, 200)]


def test_an_opinion_that_changes_has_its_grace_again() -> None:
    notes = [
        note(at_s, sight("bad"), judged=OPEN if at_s == 100 else FINE) for at_s in (0, 100, 200)
    ]

    assert found(*notes) == []


def test_no_verdict_is_no_alarm() -> None:
    unseen = Sight(listed=None, own=None, in_need=None)
    kinds = {one[0] for one in found(*(note(at, unseen, judged=PROBLEM) for at in (0, 150)))}

    assert kinds == {SILENT, DIFFER}


def test_group_that_a_page_lacks_for_one_look_is_no_contradiction() -> None:
    unseen = Sight(listed=None, own=None, in_need=None)
    notes = [note(at_s, sight("bad"), truth=PROBLEM) for at_s in range(0, 341, 20)]

    assert found(*notes, note(360, unseen, truth=PROBLEM), note(380, sight("bad"))) == []


@pytest.mark.parametrize(
    ("colour", "words", "kinds"),
    [
        ("ok", "12 s behind, and it does not catch up", [WORDS]),
        ("ok", "level, and it keeps up", []),
        ("bad", "stopped, and it keeps up", [WORDS]),
        ("bad", "slow: caught up in 3 min", []),
        ("warn", "it does not catch up", []),
        ("warn", "records arrive there; it reads 0 while 0 arrive", [WORDS]),
    ],
)
def test_words_of_one_page_that_exclude_each_other_have_no_grace(
    colour: str, words: str, kinds: list[str]
) -> None:
    assert [one[0] for one in found(note(0, sight(colour, words)))] == kinds


@pytest.mark.parametrize(("rate", "kinds"), [("0", [NUMBER]), ("5.0", []), ("12.5", [NUMBER])])
def test_a_rate_that_no_minute_had_is_found(rate: str, kinds: list[str]) -> None:
    seen = sight("ok", f"In orders it reads 5.1 records/s while {rate} arrive.")

    noted = [replace(note(at_s, seen), arrivals={"orders": (4.0, 6.0)}) for at_s in (0, 20)]

    assert [one[0] for one in found(*noted)] == kinds
    assert found(noted[0]) == []


def test_a_green_group_with_a_red_partition_contradicts_itself() -> None:
    above = mark("ok")

    seen = Sight(listed=above, own=above, in_need=None, parts=(above, mark("bad")))

    assert [one[:2] for one in found(note(0, seen))] == [(WORDS, PAGE)]


def test_pages_that_are_read_in_turn_differ_only_if_they_do_so_twice() -> None:
    apart = Sight(listed=mark("ok"), own=mark("bad"), in_need=None)

    assert found(note(0, apart), note(20, sight("ok"))) == []
    assert found(note(0, apart), note(20, apart)) == [(DIFFER, PAGE, 20, 20)]


def test_a_badge_that_differs_from_the_list_is_found() -> None:
    comparison = Comparison()

    for at_s in (0, 20):
        groups = {"a": sight("ok"), "b": sight("warn"), "c": sight("bad")}
        comparison.add_counts(at_s, Sights(groups=groups, badge=3))

    assert [one.words for one in comparison.contradictions] == ["the badge says 3, the list has 2"]
