"""The range assignor: runs of partitions, topic by topic."""

from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.coordination.groups.assignors.range import assign
from brokers.coordination.groups.assignors.spec import GroupSpec, MemberSpec
from brokers.coordination.groups.values import TopicPartitions
from tests.scale import count

A, B = b"a" * 16, b"b" * 16


def spec(
    members: dict[str, set[bytes]],
    sizes: dict[bytes, int],
    before: dict[str, TopicPartitions] | None = None,
) -> GroupSpec:
    known = before or {}
    return GroupSpec(
        {name: MemberSpec(frozenset(each), known.get(name, {})) for name, each in members.items()},
        sizes,
        is_homogeneous=False,
    )


def test_topics_are_cut_alike_and_in_order_of_the_member_ids() -> None:
    made = assign(spec({"c": {A, B}, "a": {A, B}, "b": {A}}, {A: 4, B: 3}))

    assert made == {
        "a": {A: frozenset({0, 1}), B: frozenset({0, 1})},
        "b": {A: frozenset({2})},
        "c": {A: frozenset({3}), B: frozenset({2})},
    }


def test_a_newcomer_gets_the_highest_and_others_keep_their_lowest() -> None:
    before: dict[str, TopicPartitions] = {
        "a": {A: frozenset({0, 1, 2})},
        "b": {A: frozenset({3, 4, 5})},
    }

    made = assign(spec({"a": {A}, "b": {A}, "0-new": {A}}, {A: 6}, before))

    assert made == {
        "a": {A: frozenset({0, 1})},
        "b": {A: frozenset({3, 4})},
        "0-new": {A: frozenset({2, 5})},
    }


def test_more_members_than_partitions_leave_some_without() -> None:
    made = assign(spec({"a": {A}, "b": {A}, "c": {A}}, {A: 2}, {"c": {A: frozenset({1})}}))

    assert made == {"a": {A: frozenset({0})}, "b": {}, "c": {A: frozenset({1})}}


@settings(max_examples=count(150, 300, long=15_000), deadline=None)
@given(
    st.lists(st.sets(st.sampled_from([A, B])), min_size=1, max_size=6),
    st.lists(st.sets(st.sampled_from([A, B])), min_size=1, max_size=6),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_each_partition_is_given_once_in_even_runs(
    before: list[set[bytes]], after: list[set[bytes]], a: int, b: int
) -> None:
    sizes = {A: a, B: b}
    old = assign(spec({f"m{n}": each for n, each in enumerate(before)}, sizes))
    now = {f"m{n}": each for n, each in enumerate(after)}

    made = assign(spec(now, sizes, old))

    for topic, size in sizes.items():
        shares = [made[name].get(topic, frozenset()) for name, each in now.items() if topic in each]
        if shares:
            assert sorted(n for share in shares for n in share) == list(range(size))
            assert max(map(len, shares)) - min(map(len, shares)) <= 1
        assert not any(topic in made[name] for name, each in now.items() if topic not in each)
    for share in old.values():
        for numbers in share.values():
            assert max(numbers) - min(numbers) == len(numbers) - 1
    again = assign(spec(now, sizes, made))
    assert all(again[name] is made[name] for name in made)
