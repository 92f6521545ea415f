"""How far a micro-batch goes."""

from hypothesis import given
from hypothesis import strategies as st

from spark_integration.datasource.admission import admitted, backlog, limited
from spark_integration.datasource.wire.messages import TopicPartition

PLACES = [TopicPartition("t", number) for number in range(4)]


def test_each_partition_gets_its_share() -> None:
    start = dict.fromkeys(PLACES[:3], 10)
    end = {PLACES[0]: 110, PLACES[1]: 310, PLACES[2]: 10}

    assert admitted(start, end, 40) == {PLACES[0]: 20, PLACES[1]: 40, PLACES[2]: 10}


def test_small_partition_is_admitted_beside_a_large_one() -> None:
    start = dict.fromkeys(PLACES[:2], 0)

    assert admitted(start, {PLACES[0]: 1, PLACES[1]: 10_000}, 10)[PLACES[0]] == 1


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 99)), min_size=1, max_size=4),
    st.integers(1, 60),
)
def test_batch_after_batch_everything_is_read_and_never_much_more_than_asked(
    sizes: list[tuple[int, int]], most: int
) -> None:
    start = {where: first for where, (first, _) in zip(PLACES, sizes, strict=False)}
    end = {where: first + size for where, (first, size) in zip(PLACES, sizes, strict=False)}
    at = start
    for _ in range(1 + sum(size for _, size in sizes)):
        after = admitted(at, end, most)
        assert all(at[where] <= after[where] <= end[where] for where in end)
        assert sum(backlog(at, after).values()) <= most + len(end)
        at = after

    assert at == end


def test_a_target_holds_those_that_have_one_and_leaves_out_others() -> None:
    end = {PLACES[0]: 9, PLACES[1]: 9, PLACES[2]: 9}

    assert limited(end, {PLACES[0]: 5, PLACES[1]: 20}) == {PLACES[0]: 5, PLACES[1]: 9}
