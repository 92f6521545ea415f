"""The checker of the groups' stories finds what it is there to find, in logs that are made up."""

import json
from collections.abc import Callable

import pytest

from tests.interop.ownership import Line, What, judge, parse

ENDS = {0: 20, 1: 20}


def line(ns: int, member: str, what: What, *partitions: int) -> Line:
    return Line(ns=ns, member=member, what=what, partitions=partitions)


def told(ns: int, member: str, what: What, *offsets: tuple[int, ...]) -> Line:
    return Line(ns=ns, member=member, what=what, offsets=offsets)


def fetched(ns: int, until_ns: int, *offsets: tuple[int, int]) -> Line:
    return Line(ns=ns, member="observer", what=What.FETCHED, offsets=offsets, until_ns=until_ns)


def good_story() -> list[Line]:
    """Let m1 be killed, m3 take its partition over from what m1 had committed, and m2 leave."""
    return [
        line(10, "m1", What.ASSIGNED, 0),
        line(11, "m2", What.ASSIGNED, 1),
        told(20, "m1", What.READ, (0, 0, 9)),
        told(21, "m2", What.READ, (1, 0, 19)),
        told(25, "m1", What.COMMITTED, (0, 5)),
        fetched(26, 28, (0, 5), (1, 0)),
        told(30, "m2", What.COMMITTED, (1, 20)),
        line(40, "m1", What.KILLED),
        line(50, "m2", What.REVOKED, 1),
        line(60, "m3", What.ASSIGNED, 0, 1),
        told(61, "m3", What.READ, (0, 5, 19)),
        line(62, "m2", What.CLOSING),
        told(70, "m3", What.COMMITTED, (0, 20), (1, 20)),
        fetched(71, 72, (0, 20), (1, 20)),
        line(80, "m3", What.CLOSING),
    ]


def complaints(lines: list[Line]) -> str:
    return "\n".join(judge(lines, ENDS).complaints)


def test_a_story_without_fault_is_told_with_its_intervals() -> None:
    verdict = judge(good_story(), ENDS)

    assert verdict.complaints == ()
    assert (verdict.repeated, verdict.commits, verdict.answers) == (5, 3, 2)
    assert verdict.owners() == {"m1", "m2", "m3"}
    assert [(each.partition, each.member, each.end_ns, each.how) for each in verdict.intervals] == [
        (0, "m1", 40, "killed"),
        (1, "m2", 50, "revoked"),
        (0, "m3", 80, "closing"),
        (1, "m3", 80, "closing"),
    ]
    assert "   0: m1 0.000–0.000 killed; m3 0.000–0.000 closing" in verdict.table()


def test_a_line_that_comes_late_counts_at_its_own_time() -> None:
    late = good_story()
    late.append(late.pop(2))
    late.insert(0, late.pop(8))

    assert judge(late, ENDS) == judge(good_story(), ENDS)


Break = Callable[[list[Line]], object]
BREAKS: dict[str, tuple[Break, str]] = {
    "two owners at once": (
        lambda lines: lines.append(line(30, "m2", What.ASSIGNED, 0)),
        "partition 0 was given to m2 at 30, while it was m1's until 40",
    ),
    "an owner that meets one long before it": (
        lambda lines: lines.extend(
            [
                line(12, "m4", What.ASSIGNED, 0),
                line(13, "m4", What.REVOKED, 0),
                line(30, "m5", What.ASSIGNED, 0),
                line(31, "m5", What.REVOKED, 0),
            ]
        ),
        "partition 0 was given to m5 at 30, while it was m1's until 40",
    ),
    "given away before it was revoked": (
        lambda lines: lines.append(line(49, "m4", What.ASSIGNED, 1)),
        "partition 1 was given to m4 at 49, while it was m2's until 50",
    ),
    "two owners that never end": (
        lambda lines: lines.__setitem__(-1, line(90, "m4", What.ASSIGNED, 0)),
        "partition 0 was given to m4 at 90, while it was m3's still",
    ),
    "given to another before the kill": (
        lambda lines: lines.__setitem__(9, line(39, "m3", What.ASSIGNED, 0, 1)),
        "partition 0 was given to m3 at 39, while it was m1's until 40",
    ),
    "a record that nobody read": (
        lambda lines: lines.__setitem__(10, told(61, "m3", What.READ, (0, 11, 19))),
        "nobody read offsets 10 to 10 of partition 0",
    ),
    "a partition whose end nobody read": (
        lambda lines: lines.__setitem__(3, told(21, "m2", What.READ, (1, 0, 18))),
        "nobody read offsets 19 to 19 of partition 1",
    ),
    "a record that is not there": (
        lambda lines: lines.append(told(75, "m3", What.READ, (1, 19, 20))),
        "m3 read 19 to 20 of partition 1, which ends at 20",
    ),
    "a commit that goes back": (
        lambda lines: lines.append(told(75, "m3", What.COMMITTED, (0, 19))),
        "the committed offset of partition 0 went back from 20 to 19, committed by m3 at 75",
    ),
    "an answer behind what was acknowledged before it": (
        lambda lines: lines.append(fetched(31, 33, (1, 19))),
        "the committed offset of partition 1 went back from 20 to 19, fetched by observer at 31",
    ),
    "an answer behind an earlier one": (
        lambda lines: lines.extend([fetched(41, 42, (0, 9)), fetched(43, 44, (0, 8))]),
        "the committed offset of partition 0 went back from 9 to 8, fetched by observer at 43",
    ),
    "a commit of what was never read": (
        lambda lines: lines.append(told(22, "m1", What.COMMITTED, (0, 11))),
        "m1 committed 11 of partition 0, of which 10 was never read",
    ),
    "a read after the revoke": (
        lambda lines: lines.append(told(51, "m2", What.READ, (1, 19, 19))),
        "m2 told read at 51, but it did not own partition 1",
    ),
    "a read after closing": (
        lambda lines: lines.append(told(81, "m3", What.READ, (1, 19, 19))),
        "m3 told read at 81, but it did not own partition 1",
    ),
    "a sign of life after the kill": (
        lambda lines: lines.append(told(41, "m1", What.COMMITTED, (0, 6))),
        "m1 told committed at 41, but it was dead by then",
    ),
    "a revoke of what it never had": (
        lambda lines: lines.append(line(15, "m2", What.LOST, 0)),
        "m2 told lost at 15, but it did not own partition 0",
    ),
    "an assignment of what it has": (
        lambda lines: lines.append(line(15, "m2", What.ASSIGNED, 1)),
        "m2 told assigned at 15, but it owned partition 1 already",
    ),
    "an assignment after closing": (
        lambda lines: lines.append(line(81, "m3", What.ASSIGNED, 1)),
        "m3 told assigned at 81, but it had left by then",
    ),
}


@pytest.mark.parametrize(("breaks", "complaint"), BREAKS.values(), ids=BREAKS)
def test_a_broken_story_is_found_out(breaks: Break, complaint: str) -> None:
    lines = good_story()
    breaks(lines)

    assert complaint in complaints(lines)


@pytest.mark.parametrize(
    "allowed",
    [
        # The answer was on its way while the commit was acknowledged.
        fetched(29, 31, (1, 0)),
        # One that is late does not speak against what was asked before it came.
        fetched(24, 35, (0, 0)),
        # Some clients revoke while they close.
        line(63, "m2", What.REVOKED, 1),
        # Others take nothing at first.
        line(9, "m1", What.REVOKED),
        # At the very moment of the other's end.
        line(80, "m4", What.ASSIGNED, 0),
    ],
)
def test_what_happens_in_good_stories_too_is_no_fault(allowed: Line) -> None:
    assert complaints([*good_story(), allowed]) == ""


def test_an_empty_story_of_a_topic_with_records_is_a_fault() -> None:
    assert judge([], ENDS).complaints == (
        "nobody read offsets 0 to 19 of partition 0",
        "nobody read offsets 0 to 19 of partition 1",
    )


def test_many_faults_are_cut_short() -> None:
    lines = [told(ns, "m1", What.READ, (0, 0, 0)) for ns in range(100)]

    assert judge(lines, ENDS).complaints[-1] == "and 82 more complaints"


def test_a_line_is_read_as_it_was_told() -> None:
    text = json.dumps({"ns": 7, "what": "read", "offsets": [[1, 2, 3]]})

    assert parse("m1", text) == told(7, "m1", What.READ, (1, 2, 3))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Traceback (most recent call last):", "no JSON"),
        ("[]", "without its time"),
        ('{"what": "read"}', "without its time"),
        ('{"ns": "1", "what": "closing"}', "without its time"),
        ('{"ns": 1}', "nobody understands"),
        ('{"ns": 1, "what": "began"}', "nobody understands"),
        ('{"ns": 1, "what": "assigned", "partitions": ["0"]}', "nobody understands"),
        ('{"ns": 1, "what": "assigned", "partitions": 3}', "nobody understands"),
        ('{"ns": 1, "what": "read", "offsets": [[0, -1, 5]]}', "nobody understands"),
    ],
)
def test_a_line_that_says_nothing_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse("m1", text)
