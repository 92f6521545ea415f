"""`./samsa configs` against a broker of ours."""

from collections.abc import Iterator

import pytest

from cli.configs import configs
from cli.topics import topics
from tests.cli.data_commands import Shell, shell

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("broker"), orders=1) as running:
        yield running


def test_only_what_was_set_is_shown_unless_all_is_asked_for(sh: Shell) -> None:
    assert sh.run(configs, "describe", "topic", "orders").stdout == (
        "Nothing is set for topic orders; --all shows the defaults.\n"
    )
    everything = sh.json(configs, "describe", "topic", "orders", "--all")
    assert len(everything) > 25
    assert [config["key"] for config in everything] == sorted(c["key"] for c in everything)


def test_a_key_that_is_named_is_shown_with_its_source(sh: Shell) -> None:
    [told] = sh.json(configs, "describe", "topic", "orders", "retention.ms")

    assert told == {
        "key": "retention.ms",
        "value": "604800000",
        "source": "DEFAULT_CONFIG",
        "is_default": True,
        "is_read_only": False,
        "is_sensitive": False,
    }


def test_a_key_that_does_not_exist_is_not_found(sh: Shell) -> None:
    ran = sh.run(configs, "describe", "topic", "orders", "no.such", code=3)

    assert "config no.such: a topic has no config of this name" in ran.stderr


def test_a_change_is_planned_then_made(sh: Shell) -> None:
    sh.run(topics, "create", "told")
    change = ["alter", "topic", "told", "--set", "retention.ms=5"]

    planned = sh.json(configs, *change, "--dry-run")
    assert planned["configs"] == [{"key": "retention.ms", "before": "604800000", "after": "5"}]
    assert sh.json(configs, "describe", "topic", "told") == []

    made = sh.run(configs, *change).stdout
    assert made.splitlines()[0] == "Changed:"
    [told] = sh.json(configs, "describe", "topic", "told")
    assert (told["value"], told["source"]) == ("5", "DYNAMIC_TOPIC_CONFIG")


def test_a_value_that_is_refused_is_told_in_the_brokers_words(sh: Shell) -> None:
    ran = sh.run(configs, "alter", "topic", "orders", "--set", "retention.ms=-5", code=1)

    assert "INVALID_CONFIG" in ran.stderr
    assert "retention.ms" in ran.stderr


def test_sizes_and_durations_are_typed_in_units_and_stored_as_numbers(sh: Shell) -> None:
    units = ("--set", "retention.ms=2d", "--set", "retention.bytes=5 GiB")

    ran = sh.run(configs, "alter", "topic", "orders", *units)
    wrong = sh.run(configs, "alter", "topic", "orders", "--set", "retention.ms=2x", code=2)
    told = {c["key"]: c["value"] for c in sh.json(configs, "describe", "topic", "orders")}
    sh.run(configs, "alter", "topic", "orders", "--delete", "retention.ms")
    sh.run(configs, "alter", "topic", "orders", "--delete", "retention.bytes")

    assert "172800000 (2 d)" in ran.stdout
    assert (told["retention.ms"], told["retention.bytes"]) == ("172800000", str(5 * 2**30))
    assert "retention.ms: '2x' is not a duration: write 2d, 12h, 1h30m" in wrong.stderr


def test_a_broker_is_asked_by_its_id(sh: Shell) -> None:
    told = {c["key"]: c["value"] for c in sh.json(configs, "describe", "broker", "1")}

    assert told["node.id"] == "1"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["describe", "topic", "nobody"], 3),
        (["describe", "broker", "77"], 3),
        (["describe", "planet", "x"], 2),
        (["alter", "topic", "orders"], 2),
        (["alter", "topic", "nobody", "--set", "retention.ms=1"], 3),
    ],
)
def test_what_is_missing_or_wrong_has_its_exit_code(
    sh: Shell, arguments: list[str], code: int
) -> None:
    sh.run(configs, *arguments, code=code)


def test_configs_of_all_brokers_are_set_shown_and_used(sh: Shell) -> None:
    made = sh.run(configs, "alter", "broker", "", "--set", "num.partitions=3", "--set", "typo=1")
    shown = sh.json(configs, "describe", "broker", "")
    sh.run(topics, "create", "three")

    assert "brokers do not know typo" in made.stderr
    assert [(config["key"], config["value"]) for config in shown] == [
        ("num.partitions", "3"),
        ("typo", None),
    ]
    [three] = sh.json(topics, "describe", "three")
    assert len(three["partitions"]) == 3
    sh.run(configs, "alter", "broker", "", "--delete", "num.partitions", "--delete", "typo")
    assert "all brokers" in sh.run(configs, "describe", "broker", "").stdout
