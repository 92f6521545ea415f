"""Expressions of strangers: what they match, and that none of them takes long."""

import time
from itertools import islice, pairwise

import pytest

from brokers.coordination.groups.regex import MAX_PROGRAM, Resolution, compile_checked
from brokers.coordination.groups.settings import MAX_REGEX_BYTES
from brokers.protocol.errors import ErrorCode, KafkaError

STEPS = 60
EVIL = [
    "(a?){200}a{200}",
    "(a|b|ab)*c",
    "(x+x+)+y",
    ".*a.{300}",
    "(.*)*" * 300,
    "(a{1,30}){1,30}",
    "((a?){30}b?){30}",
    "((a?){50}b?){30}",
    "|".join("a" * length + "b" for length in range(1, 80)),
]


def resolve(regexes: list[str], names: list[str]) -> dict[str, frozenset[str]]:
    resolution = Resolution(tuple(regexes), names)
    for _ in resolution.steps():
        pass
    return resolution.found


def test_an_expression_matches_whole_names() -> None:
    found = resolve(["app.*", "pears|plums", ""], ["apples", "my-apples", "pears", "plums2"])

    assert found == {
        "app.*": frozenset({"apples"}),
        "pears|plums": frozenset({"pears"}),
        "": frozenset(),
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(", "missing )"),
        ("a{2000}", "invalid repetition size"),
        (r"(a)\1", "invalid escape"),
        ("a" * (MAX_REGEX_BYTES + 1), f"{MAX_REGEX_BYTES + 1} bytes"),
        ("\ud800", "not a valid regular expression"),
        (".*a.{900}", f"{MAX_PROGRAM} are allowed"),
        (r"\pL{1000}", "not a valid regular expression"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(KafkaError) as refused:
        compile_checked(text)

    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert why in refused.value.message


def test_an_expression_of_another_version_that_is_not_valid_matches_nothing() -> None:
    assert resolve(["(", "a"], ["a", "("]) == {"(": frozenset(), "a": frozenset({"a"})}


@pytest.mark.slow
@pytest.mark.alone
def test_no_step_over_ten_thousand_long_names_takes_five_milliseconds() -> None:
    names = ["a" * (249 - number % 60) + str(number % 10) for number in range(10_000)]
    slowest = 0.0
    for text in EVIL:
        resolution = Resolution((text,), names)
        # The first steps say enough of an expression that takes long in all; one that is refused
        # has hardly any.
        times = [time.thread_time() for _ in islice(resolution.steps(), STEPS)]
        steps = [0.0, *sorted(later - sooner for sooner, later in pairwise(times))]
        # One step in twenty may be disturbed by what else runs here.
        slowest = max(slowest, steps[int(len(steps) * 0.95)])

    assert slowest < 0.005
