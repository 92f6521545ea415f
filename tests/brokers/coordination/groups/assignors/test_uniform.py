"""The uniform assignor: even shares, few moves."""

from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.coordination.groups.assignors.spec import GroupSpec, MemberSpec
from brokers.coordination.groups.assignors.uniform import assign
from brokers.coordination.groups.values import TopicPartitions
from tests.scale import count

TOPICS = [bytes([number]) * 16 for number in range(1, 5)]
SIZES = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), min_size=1)


def spec(
    subscribed: dict[str, frozenset[bytes]],
    sizes: dict[bytes, int],
    before: dict[str, TopicPartitions] | None = None,
) -> GroupSpec:
    known = before or {}
    wanted = set().union(*subscribed.values())
    return GroupSpec(
        {name: MemberSpec(topics, known.get(name, {})) for name, topics in subscribed.items()},
        {topic: size for topic, size in sizes.items() if topic in wanted},
        is_homogeneous=len(set(subscribed.values())) == 1,
    )


def owners(made: dict[str, TopicPartitions]) -> dict[tuple[bytes, int], str]:
    found: dict[tuple[bytes, int], str] = {}
    for member_id, share in made.items():
        for topic, numbers in share.items():
            assert numbers
            for number in numbers:
                assert found.setdefault((topic, number), member_id) == member_id
    return found


def sizes_of(made: dict[str, TopicPartitions]) -> list[int]:
    return [sum(map(len, share.values())) for share in made.values()]


@settings(max_examples=count(100, 200, long=10_000), deadline=None)
@given(SIZES, st.integers(1, 7), st.integers(1, 7))
def test_equal_members_get_even_shares_with_fewest_moves(
    sizes: dict[bytes, int], before: int, after: int
) -> None:
    topics = frozenset(sizes)
    everything = {(topic, n) for topic, size in sizes.items() for n in range(size)}

    old = assign(spec({f"m{n}": topics for n in range(before)}, sizes))
    new = assign(spec({f"m{n}": topics for n in range(after)}, sizes, old))

    for made in (old, new):
        assert set(owners(made)) == everything
        assert max(sizes_of(made)) - min(sizes_of(made)) <= 1
    # Remaining members revoke only what is above their share, for new members, at most one
    # partition too many; partitions of members that left move to those that stayed.
    was, now = owners(old), owners(new)
    moved = sum(was[each] != now[each] for each in was)
    left_behind = sum(int(owner[1:]) >= after for owner in was.values())
    low = len(everything) // after
    taken = sum(sizes_of(new)[before:]) if after > before else 0
    assert moved <= max(left_behind, taken)
    if before == after:
        assert all(new[name] is old[name] for name in old)
    assert all(new[name] is old[name] for name in old if name in new and new[name] == old[name])
    assert low <= min(sizes_of(new))


@settings(max_examples=count(150, 300, long=15_000), deadline=None)
@given(
    SIZES,
    st.lists(st.sets(st.sampled_from(TOPICS)), min_size=1, max_size=6),
    st.lists(st.sets(st.sampled_from(TOPICS)), min_size=1, max_size=6),
)
def test_different_members_get_each_partition_once_and_balanced(
    sizes: dict[bytes, int], before: list[set[bytes]], after: list[set[bytes]]
) -> None:
    old_spec = spec({f"m{n}": frozenset(t & set(sizes)) for n, t in enumerate(before)}, sizes)
    old = assign(old_spec)
    now = {f"m{n}": frozenset(t & set(sizes)) for n, t in enumerate(after)}
    new_spec = spec(now, sizes, old)

    made = assign(new_spec)

    assert set(made) == set(now)
    found = owners(made)
    assert set(found) == {
        (topic, n) for topic, size in new_spec.partitions.items() for n in range(size)
    }
    counts = dict(zip(made, sizes_of(made), strict=True))
    for (topic, _), owner in found.items():
        assert topic in now[owner]
        for other, topics in now.items():
            if topic in topics:
                assert counts[owner] - counts[other] <= 1


def test_a_member_without_a_topic_has_an_empty_share() -> None:
    assert assign(spec({"a": frozenset()}, {})) == {"a": {}}
    assert assign(GroupSpec({}, {}, is_homogeneous=True)) == {}


def test_deleted_topics_and_partitions_are_dropped_from_shares() -> None:
    gone, topic = TOPICS[0], TOPICS[1]
    before: dict[str, TopicPartitions] = {
        "a": {gone: frozenset({0}), topic: frozenset({0, 7})},
    }

    made = assign(spec({"a": frozenset({topic})}, {topic: 2}, before))

    assert made == {"a": {topic: frozenset({0, 1})}}
