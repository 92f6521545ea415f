"""What a predicate takes, and what it refuses with a sentence."""

import json
from typing import Any

import pytest

from brokers.protocol.records.reader import Record
from brokers.search import predicate
from brokers.search.predicate import (
    MAX_CONDITIONS,
    MAX_DEPTH,
    MAX_NEEDLE_BYTES,
    MAX_PATH_STEPS,
    condition_of,
)


def record(value: Any = None, key: bytes | None = None, headers: Any = ()) -> Record:
    return Record(0, 0, key, value, tuple(headers))


def matches_json(document: Any, path: list[Any], op: str, *wanted: Any) -> bool:
    told = {"path": path, "op": op, **({"value": wanted[0]} if wanted else {})}
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return condition_of({"json": told}).matches(record(raw))


def test_no_predicate_takes_every_record() -> None:
    assert condition_of(None).matches(record())


def test_bytes_that_are_no_text_are_found_by_base64() -> None:
    condition = condition_of({"contains": {"base64": "AP8="}})

    assert condition.matches(record(b"x\x00\xffx"))
    assert not condition.matches(record(b"x\x00x"))
    assert condition.may_hold(b"..\x00\xff..")
    assert not condition.may_hold(b"....")


@pytest.mark.parametrize(
    ("op", "wanted", "expected"),
    [
        ("==", 3, [False, True, False, False]),
        ("!=", 3, [True, False, True, True]),
        ("<", 3, [True, False, False, False]),
        (">=", 3, [False, True, False, False]),
        ("==", "3", [False, False, True, False]),
        ("==", True, [False, False, False, True]),
    ],
)
def test_numbers_text_and_truth_are_told_apart(op: str, wanted: Any, expected: list[bool]) -> None:
    assert [matches_json({"n": n}, ["n"], op, wanted) for n in (1, 3.0, "3", True)] == expected


def test_a_value_is_compared_whole_as_a_key_is() -> None:
    assert condition_of({"value": {"text": "a"}}).matches(record(b"a"))
    assert not condition_of({"value": {"text": "a"}}).matches(record(b"ab"))
    assert condition_of({"value": None}).matches(record())
    assert not condition_of({"value": None}).matches(record(b""))
    assert not condition_of({"value": {"text": "ab"}}).may_hold(b"..a..")


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("==", [False, True, False]),
        ("!=", [True, False, True]),
        ("<", [True, False, False]),
        (">=", [False, True, True]),
    ],
)
def test_times_are_compared_with_milliseconds(op: str, expected: list[bool]) -> None:
    condition = condition_of({"timestamp": {"op": op, "value": 5}})

    assert [condition.matches(Record(0, at, None, None, ())) for at in (4, 5, 6)] == expected
    assert condition.may_hold(b"")


def test_text_in_a_document_is_looked_into() -> None:
    assert matches_json({"n": "Too late"}, ["n"], "contains", "late")
    assert not matches_json({"n": "Too late"}, ["n"], "contains", "too")
    assert matches_json({"n": "Too late"}, ["n"], "icontains", "TOO")
    assert not matches_json({"n": 5}, ["n"], "contains", "5")


def test_a_path_goes_through_objects_and_lists() -> None:
    document = {"a": [{"b": 1}, {"b": None}]}

    assert matches_json(document, ["a", 0, "b"], "==", 1)
    assert matches_json(document, ["a", -1, "b"], "exists")
    assert matches_json(document, ["a", 1, "b"], "==", None)
    assert not matches_json(document, ["a", 2, "b"], "exists")
    assert not matches_json(document, ["a", "b"], "exists")
    assert not matches_json(document, ["c"], "!=", 1)
    assert matches_json([1], [], "exists")


@pytest.mark.parametrize(
    "value", [b"", b"{", b"\xff", b"[" * 100_000, b'{"n": ' + b"9" * 5_000 + b"}"]
)
def test_what_is_no_json_matches_nothing(value: bytes) -> None:
    assert not matches_json(value, ["n"], "exists")


def test_a_value_that_is_too_long_is_not_read_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicate, "MAX_JSON_BYTES", 7)

    assert matches_json({"n": 1}, ["n"], "exists") is False
    assert matches_json([1], [], "exists") is True


def test_text_that_is_escaped_in_json_is_found_in_a_batch() -> None:
    assert condition_of({"json": {"path": ["n"], "op": "==", "value": "x"}}).may_hold(b"")


def deep(levels: int) -> Any:
    tree: Any = {"key": None}
    for _ in range(levels - 1):
        tree = {"not": tree}
    return tree


def many(conditions: int) -> Any:
    return {"all": [{"key": None}] * (conditions - 1)}


def test_trees_of_the_largest_size_are_taken() -> None:
    condition_of(deep(MAX_DEPTH))
    condition_of(many(MAX_CONDITIONS))
    condition_of({"contains": {"text": "x" * MAX_NEEDLE_BYTES}})


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        (deep(MAX_DEPTH + 1), "16 levels deep"),
        (many(MAX_CONDITIONS + 1), "64 conditions"),
        ([], "is not a condition"),
        ({}, "is not a condition"),
        ({"a": 1, "b": 2}, "is not a condition"),
        ({"regex": "x"}, "'regex' is not a condition; use all"),
        ({"all": []}, "'all' holds a list of conditions"),
        ({"any": {}}, "'any' holds a list"),
        ({"contains": "x"}, "'contains' holds an object"),
        ({"contains": {}}, "either 'text' or 'base64'"),
        ({"contains": {"text": "a", "base64": "YQ=="}}, "either 'text' or 'base64'"),
        ({"contains": {"text": 1}}, "is 1, not a text"),
        ({"contains": {"base64": "!"}}, "cannot be read"),
        ({"contains": {"text": "\ud800"}}, "cannot be read"),
        ({"contains": {"text": "x" * 4_097}}, "looks for 4097 bytes, 4096 are allowed"),
        ({"contains": {"text": "x", "in": "header"}}, "it is 'key' or 'value'"),
        ({"contains": {"text": "x", "ignore_case": 1}}, "it is true or false"),
        ({"contains": {"text": "x", "case": True}}, "has no field 'case'"),
        ({"header": {"text": "x"}}, "needs a field 'name'"),
        ({"json": {"path": "a", "op": "exists"}}, "a list of names and indexes"),
        ({"json": {"path": [True], "op": "exists"}}, "a list of names and indexes"),
        ({"json": {"path": ["a"] * (MAX_PATH_STEPS + 1), "op": "exists"}}, "at most 32"),
        ({"json": {"path": [], "op": "~", "value": 1}}, "'op' is '~'"),
        ({"json": {"path": [], "op": ["=="], "value": 1}}, "'op' is"),
        ({"json": {"path": [], "op": "=="}}, "needs a 'value'"),
        ({"json": {"path": [], "op": "contains", "value": 5}}, "looks for a text"),
        ({"json": {"path": [], "op": "icontains", "value": "x" * 4_097}}, "looks for a text"),
        ({"timestamp": {"op": "exists", "value": 5}}, "compared with milliseconds"),
        ({"timestamp": {"op": "<", "value": "5"}}, "compared with milliseconds"),
        ({"timestamp": {"op": "<"}}, "needs a field 'value'"),
        ({"json": {"path": [], "op": "exists", "value": 1}}, "has no 'value'"),
        ({"json": {"path": [], "op": "<", "value": None}}, "compares numbers and text"),
    ],
)
def test_what_is_no_predicate_is_refused_with_a_sentence(tree: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        condition_of(tree)
