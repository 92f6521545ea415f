"""Start-up configs of a broker: unknown ones, and ones without effect, are refused."""

import pytest

from brokers.cluster.broker_configs import ROWS
from brokers.cluster.static_configs import wrong

NUMBERS = {"max.connections": 5, "samsa.frame.max.ms": 120_000}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("auto.create.topics.enable", "false"),
        ("broker.rack", "here"),
        ("group.initial.rebalance.delay.ms", "0"),
        ("log.retention.hours", "1"),
        ("max.connections", "1"),
        ("samsa.frame.max.ms", "1"),
    ],
)
def test_config_with_an_effect_is_accepted(key: str, text: str) -> None:
    assert wrong(key, text, NUMBERS) is None


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        (
            "log.retention.msec",
            "1",
            "there is no broker config 'log.retention.msec'; near it: log.",
        ),
        ("samsa.frame.max", "1", "near it: samsa.frame.max.ms"),
        ("retention.ms", "1", "a topic's config, not a broker's; near it: log.retention.ms"),
        ("zzz", "1", "there is no broker config 'zzz'"),
        ("max.connections", "0", "max.connections is '0', and that is below 1"),
        ("max.connections", "many", "max.connections is 'many', and that is no"),
        ("samsa.frame.max.ms", "soon", "that is not a number"),
        ("log.retention.ms", "soon", "log.retention.ms is 'soon', and that is no"),
        ("authorizer.class.name", "Strict", "would have no effect: this release has no use"),
        ("node.id", "7", "would have no effect: the cluster gives each broker its id"),
        ("log.dirs", "/data", "would have no effect: the Nth broker of a home"),
        ("listeners", "PLAINTEXT://:9092", "follow from --bind, --port and --advertise"),
        ("num.partitions", "0", "num.partitions is '0', and that is below 1"),
    ],
)
def test_config_without_an_effect_is_refused_by_name(key: str, text: str, words: str) -> None:
    found = wrong(key, text, NUMBERS)

    assert found is not None
    assert words in found
    assert key in found


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_every_key_accepts_its_default(row: object) -> None:
    assert isinstance(row, type(ROWS["node.id"]))

    if row.default is not None:
        assert wrong(row.key, row.default, {}) is None


def test_a_refusal_repeats_no_more_than_a_part_of_what_came() -> None:
    found = wrong("x" * 10_000, "y", NUMBERS)

    assert found is not None
    assert len(found) < 500
