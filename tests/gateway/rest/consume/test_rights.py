"""What a subscription can mean, against what somebody may read."""

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.grants import names_of
from gateway.rest.consume.bodies import subscription_of
from gateway.rest.consume.rights import covers, literal_start


@pytest.mark.parametrize(
    ("pattern", "start"),
    [
        ("^(orders-.*)$", "orders-"),
        ("^orders", "orders"),
        ("^(a\\.b.*)$", "a.b"),
        ("^(ordersx*)$", "orders"),
        ("^(ordersx?)$", "orders"),
        ("^(ordersx{0,3})$", "orders"),
        ("^(a\\.*)$", "a"),
        ("^(orders|secret)$", ""),
        ("^(.*)$", ""),
        ("^([o]rders)$", ""),
        ("^((?i)orders)$", ""),
        ("^(orders)", "orders"),
        ("^(orders-)?(.*)$", ""),
        ("^(orders-)*(.*)$", ""),
        ("^(orders-){0}(.*)$", ""),
        ("^(orders-)?", ""),
        ("^(orders-(a)+)$", ""),
    ],
)
def test_a_pattern_begins_with_what_each_of_its_names_begins_with(pattern: str, start: str) -> None:
    assert literal_start(pattern) == start


@given(st.from_regex(r"\A[ab.\\*?+{}()|\[\]12,]{0,8}\Z"), st.text("ab", max_size=5))
def test_no_name_that_fits_begins_otherwise(inner: str, name: str) -> None:
    try:
        with warnings.catch_warnings(action="ignore"):
            matches = re.search(f"^({inner})$", name)
    except re.error:
        return
    if matches:
        assert name.startswith(literal_start(f"^({inner})$"))


@pytest.mark.parametrize(
    ("granted", "is_covered"),
    [(["*"], True), (["ord*"], True), (["orders-x*"], False), (["orders-"], False), ([], False)],
)
def test_a_pattern_is_allowed_where_all_it_can_mean_is(
    granted: list[str], is_covered: bool
) -> None:
    assert covers(names_of(granted), "^(orders-.*)$") is is_covered


def test_a_pattern_does_not_leave_the_parentheses_that_are_put_around_it() -> None:
    wanted = subscription_of({"topic_pattern": "orders-)?(.*"})
    assert re.search(wanted.pattern, "secret")
    assert not covers(names_of(["orders-*"]), wanted.pattern)
