"""Ratios beside a peer: ours divided by the peer's, and none where a figure is missing."""

from math import nan

from bench.ratios import Ratios


def test_figures_of_both_become_ratios_under_their_columns() -> None:
    ratios = Ratios("Kafka")

    ratios.note("produce", cpu=(10.0, 40.0), rate=(300.0, 200.0), p99=(50.0, 100.0))

    table = ratios.table()
    assert table.title == "Samsa divided by Kafka"
    assert table.columns == ("work", "CPU", "rate", "p99")
    assert list(table.rows) == [("produce", 0.25, 1.5, 0.5)]


def test_what_one_of_them_does_not_show_has_no_ratio() -> None:
    ratios = Ratios("elsewhere:9092")

    ratios.note("fetch", cpu=(10.0, nan), rate=(300.0, 0.0))

    assert list(ratios.table().rows) == [("fetch", None, None, None)]
