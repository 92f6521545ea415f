"""How the text of a value is read: what Apache Kafka 4.3's own ConfigDef did with the same text."""

import pytest

from brokers.cluster.config_values import (
    MAX_VALUE_LENGTH,
    ConfigRow,
    ConfigType,
    ConfigValue,
    at_least,
    between,
    items_of,
    one_of,
    parse,
    throttled_replicas,
)

READ: list[tuple[ConfigType, str, ConfigValue]] = [
    (ConfigType.BOOLEAN, "TRUE", True),
    (ConfigType.BOOLEAN, " false ", False),
    (ConfigType.INT, " +5 ", 5),
    (ConfigType.INT, "-2147483648", -(2**31)),
    (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
    (ConfigType.SHORT, "32767", 32767),
    (ConfigType.DOUBLE, "5e-1", 0.5),
    (ConfigType.DOUBLE, ".5f", 0.5),
    (ConfigType.STRING, " gzip ", "gzip"),
    (ConfigType.LIST, "", ()),
    (ConfigType.LIST, " compact , delete", ("compact", "delete")),
    (ConfigType.LIST, "delete,delete", ("delete",)),
]
NOT_READ: list[tuple[ConfigType, str, str]] = [
    (ConfigType.BOOLEAN, "yes", "neither true nor false"),
    (ConfigType.BOOLEAN, "", "neither true nor false"),
    (ConfigType.INT, "3000000000", "32 bits"),
    (ConfigType.SHORT, "32768", "16 bits"),
    (ConfigType.LONG, "9223372036854775808", "64 bits"),
    (ConfigType.LONG, "1_0", "whole number"),
    (ConfigType.LONG, "5L", "whole number"),
    (ConfigType.LONG, "0x10", "whole number"),
    (ConfigType.LONG, "", "whole number"),
    (ConfigType.LONG, "9" * 1000, "whole number"),
    (ConfigType.DOUBLE, "inf", "not a number"),
    (ConfigType.DOUBLE, "1e999", "not a number"),
    (ConfigType.LIST, "compact,", "empty item"),
]


@pytest.mark.parametrize(("kind", "text", "value"), READ)
def test_text_is_read_as_kafka_reads_it(kind: ConfigType, text: str, value: ConfigValue) -> None:
    assert parse(kind, text) == value


@pytest.mark.parametrize(("kind", "text", "reason"), NOT_READ)
def test_text_that_kafka_refuses_is_refused(kind: ConfigType, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(kind, text)


def test_rules_say_what_is_wrong() -> None:
    assert at_least(1)(0) == "is below 1"
    assert at_least(1)(1) is None
    assert between(1, 9, also=-1)(0) == "is not between 1 and 9 nor -1"
    assert between(1, 9, also=-1)(-1) is None
    assert between(0, 1)(0.5) is None
    assert between(0, 1)(1.5) == "is not between 0 and 1"
    assert one_of("a", "b")("c") == "is not one of a, b"
    assert items_of("a", "b")(("a", "c")) == "names 'c', known are a, b"
    assert items_of("a", "b")(()) is None


@pytest.mark.parametrize("items", [(), ("*",), ("0:1", "1:2")])
def test_throttled_replicas_are_all_or_pairs(items: tuple[str, ...]) -> None:
    assert throttled_replicas(items) is None


@pytest.mark.parametrize("items", [("x",), ("none",), ("*", "0:1"), ("0:",)])
def test_other_throttled_replicas_are_refused(items: tuple[str, ...]) -> None:
    assert throttled_replicas(items) is not None


def test_a_value_of_any_length_is_refused_by_its_length() -> None:
    row = ConfigRow(key="k", type=ConfigType.STRING, default="a", sentence="A key.")

    assert row.wrong("x" * MAX_VALUE_LENGTH) is None
    assert row.wrong("x" * (MAX_VALUE_LENGTH + 1)) == "has 1025 characters, 1024 are allowed"


def test_a_default_is_known_however_it_is_written() -> None:
    row = ConfigRow(key="k", type=ConfigType.DOUBLE, default="0.5", sentence="A key.")
    without = ConfigRow(key="k", type=ConfigType.INT, default=None, sentence="A key.")

    assert row.is_default(" .50 ")
    assert not row.is_default("0.6")
    assert not without.is_default("1")
