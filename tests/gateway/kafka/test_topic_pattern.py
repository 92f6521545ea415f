"""Topics by an expression: whole names, in bounded time and memory."""

import pytest

from gateway.kafka.topic_pattern import MAX_CHARS, BadPattern, TopicPattern

NAMES = ["orders", "orders-eu", "orders.us", "payments"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("orders", ["orders"]),
        ("orders.*", ["orders", "orders-eu", "orders.us"]),
        ("^orders\\..*$", ["orders.us"]),
        ("orders|payments", ["orders", "payments"]),
        ("(?i)ORDERS-EU", ["orders-eu"]),
        (".*", NAMES),
        ("rders", []),
    ],
)
def test_an_expression_means_whole_names(text: str, meant: list[str]) -> None:
    assert TopicPattern(text).among(NAMES) == meant


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "0 characters"),
        ("a" * (MAX_CHARS + 1), "1001 characters"),
        ("orders(", "is not an expression of RE2"),
        ("(?<=a)b", "is not an expression of RE2"),
        ("\ud800", "is not an expression of RE2"),
        ("(a{1,100}){1,100}", "is not an expression of RE2"),
        ("[a-z0-9]{1,300}[^x]{1,300}", "instructions, and 500 are allowed"),
    ],
)
def test_what_means_nothing_or_costs_too_much_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadPattern, match=words):
        TopicPattern(text)
