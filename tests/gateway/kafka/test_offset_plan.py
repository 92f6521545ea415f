"""Plans of a reset: inside of what a partition holds, and the same on paper as in deed."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kafka.offset_plan import (
    NOT_COMMITTED,
    Goal,
    GoalKind,
    Known,
    PlanError,
    below_start,
    beyond_end,
    csv_of,
    parse_csv,
    parse_duration,
    parse_places,
    parse_topics,
    plan_of,
)
from gateway.kafka.values import Place

ORDERS = Place(topic="orders", partition=0)
TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)
OFFSETS = st.integers(0, 2**63 - 1)


def known(
    place: Place = ORDERS,
    *,
    committed: int | None = 50,
    start: int = 10,
    end: int = 100,
    found: int | None = None,
) -> Known:
    return Known(place=place, committed=committed, start=start, end=end, found=found)


@pytest.mark.parametrize(
    ("goal", "after", "note"),
    [
        (Goal(kind=GoalKind.EARLIEST), 10, ""),
        (Goal(kind=GoalKind.LATEST), 100, ""),
        (Goal(kind=GoalKind.CURRENT), 50, ""),
        (Goal(kind=GoalKind.OFFSET, value=42), 42, ""),
        (Goal(kind=GoalKind.OFFSET, value=3), 10, below_start(3, 10)),
        (Goal(kind=GoalKind.OFFSET, value=101), 100, beyond_end(101, 100)),
        (Goal(kind=GoalKind.SHIFT, value=7), 57, ""),
        (Goal(kind=GoalKind.SHIFT, value=-7), 43, ""),
        (Goal(kind=GoalKind.SHIFT, value=-41), 10, below_start(9, 10)),
        (Goal(kind=GoalKind.SHIFT, value=51), 100, beyond_end(101, 100)),
        (Goal(kind=GoalKind.TIME), 77, ""),
        (Goal(kind=GoalKind.FILE), 77, ""),
    ],
)
def test_a_goal_becomes_an_offset_that_the_partition_holds(
    goal: Goal, after: int, note: str
) -> None:
    [step] = plan_of(goal, [known(found=77)])

    assert (step.before, step.after, step.note) == (50, after, note)


def test_what_is_current_is_the_end_where_nothing_is_committed() -> None:
    [step] = plan_of(Goal(kind=GoalKind.CURRENT), [known(committed=None)])

    assert (step.before, step.after, step.note) == (None, 100, NOT_COMMITTED)


def test_what_is_committed_may_be_gone_by_now() -> None:
    [step] = plan_of(Goal(kind=GoalKind.CURRENT), [known(committed=5)])

    assert (step.before, step.after, step.note) == (5, 10, below_start(5, 10))


def test_nothing_can_be_shifted_where_nothing_is_committed() -> None:
    with pytest.raises(PlanError, match="topic orders, partition 0: nothing is committed"):
        plan_of(Goal(kind=GoalKind.SHIFT, value=1), [known(committed=None)])


@pytest.mark.parametrize(
    ("committed", "goal", "skipped", "read_again"),
    [
        (50, 70, 20, 0),
        (50, 30, 0, 20),
        (50, 50, 0, 0),
        (None, 70, 0, 0),
        # What the partition has lost already is passed over by nobody.
        (5, 30, 20, 0),
        # A commit of a log that was longer once.
        (120, 90, 0, 10),
    ],
)
def test_a_step_says_how_much_is_skipped_and_how_much_is_read_again(
    committed: int | None, goal: int, skipped: int, read_again: int
) -> None:
    [step] = plan_of(Goal(kind=GoalKind.OFFSET, value=goal), [known(committed=committed)])

    assert (step.skipped, step.read_again) == (skipped, read_again)


@given(
    kind=st.sampled_from(GoalKind),
    value=st.integers(-(2**63) + 1, 2**63 - 1),
    committed=OFFSETS,
    bounds=st.tuples(OFFSETS, OFFSETS).map(sorted),
    found=OFFSETS,
)
def test_no_plan_leaves_the_partition(
    kind: GoalKind, value: int, committed: int, bounds: list[int], found: int
) -> None:
    start, end = bounds

    [step] = plan_of(
        Goal(kind=kind, value=value),
        [known(committed=committed, start=start, end=end, found=found)],
    )

    assert start <= step.after <= end
    assert not step.note or step.after in bounds


@given(
    st.dictionaries(st.builds(Place, topic=TOPICS, partition=st.integers(0, 2**31 - 1)), OFFSETS)
)
def test_what_is_exported_is_read_back_as_the_same_plan(offsets: Mapping[Place, int]) -> None:
    steps = plan_of(
        Goal(kind=GoalKind.FILE),
        [known(place, start=0, end=2**63 - 1, found=offset) for place, offset in offsets.items()],
    )

    text = csv_of((step.place, step.after) for step in steps)

    if offsets:
        assert parse_csv(text, "g") == offsets
    assert [step.place for step in steps] == sorted(offsets)


def test_an_export_is_three_columns_without_a_title() -> None:
    text = csv_of([(Place(topic="a", partition=3), 100), (ORDERS, 100)])

    assert text == "a,3,100\norders,0,100\n"


def test_kafkas_export_of_several_groups_is_read_for_the_group_that_is_meant() -> None:
    # Kafka's tool puts long names into quotes.
    text = 'other,orders,0,1\ng,"a-topic-with-a-rather-long-name",2,7\r\n\n'

    assert parse_csv(text, "g") == {Place(topic="a-topic-with-a-rather-long-name", partition=2): 7}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no row is about group g"),
        ("other,orders,0,1\n", "no row is about group g"),
        ("orders,0\n", "line 1 has 2 columns"),
        ("orders,0,1\norders,0,2\n", "line 2 names topic orders, partition 0 a second time"),
        ("orders,-1,1\n", "'-1' is not a topic with a partition"),
        ("orders,2147483648,1\n", "is not a topic with a partition"),
        (",0,1\n", "is not a topic with a partition"),
        ("orders,0,x\n", "line 1: 'x' is not an offset"),
        ("orders,0,9223372036854775808\n", "is not an offset"),
        ("orders,0,٣\n", "is not an offset"),
        ('"orders,0,1\n', "line 1: unexpected end of data"),
    ],
)
def test_a_file_that_makes_no_sense_says_where(text: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        parse_csv(text, "g")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT30M", 30 * 60_000),
        ("P7D", 7 * 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt1s", 1_000),
        ("PT0.0019S", 1),
    ],
)
def test_a_duration_is_read_as_java_reads_it(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "1D", "P1M", "P1Y", "-PT1H", "PT-1H", "PT1H30", "P1D "]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="is not a duration"):
        parse_duration(text)


def test_a_topic_is_named_alone_or_with_partitions() -> None:
    assert parse_places("orders") == ("orders", ())
    assert parse_places("orders:2,0,2") == ("orders", (0, 2))


def test_a_topic_that_is_named_twice_means_all_that_was_named() -> None:
    assert parse_topics(["a:1", "b", "a:0,1", "b:2"]) == {"a": (0, 1), "b": ()}
    assert parse_topics(["a:1", "a"]) == {"a": ()}


@pytest.mark.parametrize("text", ["", ":0", "orders:", "orders:a", "orders:-1", "orders:1,,2"])
def test_what_is_no_topic_with_partitions_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="is not a topic"):
        parse_places(text)
