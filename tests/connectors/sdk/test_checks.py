"""Texts of single keys: what they become, and the words of Kafka for what is wrong."""

from typing import Any

import pytest

from connectors.sdk import checks
from connectors.sdk.configs import REQUIRED, Check, Importance, Key, Kind, Secret


def key_of(kind: Kind, *, name: str = "tasks.max", check: Check | None = None) -> Key:
    return Key(
        name=name, kind=kind, default=REQUIRED, importance=Importance.LOW, doc="", check=check
    )


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.BOOLEAN, " True ", True),
        (Kind.BOOLEAN, False, False),
        (Kind.STRING, " a b\n", "a b"),
        (Kind.INT, "+5", 5),
        (Kind.INT, 7, 7),
        (Kind.SHORT, "-32768", -32768),
        (Kind.LONG, "9223372036854775807", 2**63 - 1),
        (Kind.DOUBLE, "1.5e2f", 150.0),
        (Kind.DOUBLE, "-Infinity", float("-inf")),
        (Kind.LIST, "", []),
        (Kind.LIST, "a , b,", ["a", "b", ""]),
        (Kind.CLASS, "a.B", "a.B"),
        (Kind.INT, None, None),
    ],
)
def test_texts_become_values_as_in_kafka(kind: Kind, text: Any, value: Any) -> None:
    assert checks.parse(key_of(kind), text) == value


@pytest.mark.parametrize(
    ("kind", "text", "wrong"),
    [
        (
            Kind.INT,
            "foo",
            "Invalid value foo for configuration tasks.max: Not a number of type INT",
        ),
        (Kind.INT, "2147483648", "Not a number of type INT"),
        (Kind.INT, "1_000", "Not a number of type INT"),
        (Kind.INT, "9" * 5000, "Not a number of type INT"),
        (Kind.INT, True, "Expected value to be a 32-bit integer, but it was a bool"),
        (Kind.DOUBLE, "nan", "Not a number of type DOUBLE"),
        (Kind.DOUBLE, 10**400, "Not a number of type DOUBLE"),
        (Kind.BOOLEAN, "yes", "Expected value to be either true or false"),
        (Kind.STRING, 5, "Expected value to be a string, but it was a int"),
        (Kind.LIST, 5, "Expected a comma separated list."),
        (Kind.CLASS, [], "Expected a Class instance or class name."),
        (Kind.STRING, "x" * 1_000_001, "at most 1000000 are allowed"),
    ],
)
def test_a_text_that_is_no_value_is_refused_in_kafkas_words(
    kind: Kind, text: Any, wrong: str
) -> None:
    with pytest.raises(checks.InvalidValue) as refusal:
        checks.parse(key_of(kind), text)

    assert str(refusal.value).endswith(wrong)
    assert len(str(refusal.value)) < 1200


def test_a_password_shows_in_no_message() -> None:
    key = key_of(Kind.PASSWORD, name="connection.password", check=lambda _: "is too short")

    value = checks.parse(key, " s3cret ")

    assert isinstance(value, Secret)
    assert value.reveal() == "s3cret"
    assert "s3cret" not in (checks.check(key, value) or "")
    assert checks.to_text(key, value) == "[hidden]"
    assert "4711" not in checks.problem(key, 4711, "Expected value to be a string")


@pytest.mark.parametrize(
    ("check", "value", "wrong"),
    [
        (checks.in_range(1), 1, None),
        (checks.in_range(1), 0, "Value must be at least 1"),
        (checks.in_range(1, 5), 6, "Value must be no more than 5"),
        (checks.in_range(1), None, "Value must be non-null"),
        (checks.one_of("none", "all"), "some", "String must be one of: none, all"),
        (checks.one_of("none", "all"), None, "String must be one of: none, all"),
        (checks.one_of_ignoring_case("a"), "A", None),
        (checks.one_of_ignoring_case("a"), "b", "String must be one of (case insensitive): a"),
        (checks.each_of("a", "b"), ["a", "c"], "String must be one of: a, b"),
        (checks.non_empty, "", "String must be non-empty"),
        (checks.non_empty, None, None),
        (checks.non_null, None, "entry must be non null"),
        (checks.without_control_characters, "a\tb", "String may not contain control sequences"),
        (checks.at_most_items(1), ["a", "b"], "exceeds maximum list size of [1]"),
        (checks.pattern, "(", "Must be a valid regular expression"),
        (checks.all_of(checks.non_empty, checks.one_of("a")), "", "String must be non-empty"),
    ],
)
def test_checks_speak_as_kafkas_validators(check: Check, value: Any, wrong: str | None) -> None:
    found = check(value)

    assert (found is None) == (wrong is None)
    assert (found or "").startswith(wrong or "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), (True, "true"), (5, "5"), (["a", "b"], "a,b"), ([], "")],
)
def test_values_are_written_as_validate_writes_them(value: Any, text: str | None) -> None:
    assert checks.to_text(key_of(Kind.STRING), value) == text
