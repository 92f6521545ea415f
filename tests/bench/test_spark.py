"""Costs of rows, beside those of Spark's own JAR or without them."""

from tests.extras import requires

pytestmark = requires("spark")


def test_a_row_of_the_table_divides_by_rows_and_by_the_jar() -> None:
    from bench.spark import Cost, row  # noqa: PLC0415 (it imports pyspark)

    ours = Cost(seconds=2.0, spark=3.0, broker=0.5)
    jar = Cost(seconds=1.0, spark=2.0, broker=1.0)

    assert row("batch", ours, jar, 1_000_000) == ("batch", 500_000, 1_000_000, 0.5, 3, 2, 0.5, 1)
    assert row("batch", ours, None, 1_000_000)[2:4] == (None, None)


def test_the_best_of_rounds_is_the_best_of_each_figure() -> None:
    from bench.spark import Cost  # noqa: PLC0415 (it imports pyspark)

    best = Cost(seconds=1.0, spark=5.0, broker=2.0).best(Cost(seconds=2.0, spark=4.0, broker=3.0))

    assert best == Cost(seconds=1.0, spark=4.0, broker=2.0)
