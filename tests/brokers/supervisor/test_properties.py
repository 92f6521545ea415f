"""The syntax of server.properties, as Java reads it."""

import pytest

from brokers.supervisor.properties import parse


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("# a comment\n! another\n\n  \n", {}),
        ("a=1\nb: 2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a = 1  \r\nb\t=\t2", {"a": "1  ", "b": "2"}),
        ("a=", {"a": ""}),
        ("a", {"a": ""}),
        ("a=b=c:d e", {"a": "b=c:d e"}),
        ("a=1,\\\n   2,\\\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=C:\\\\\nb=2", {"a": "C:\\", "b": "2"}),
        ("a\\=b\\:c\\ d=\\u00e9\\t\\z", {"a=b:c d": "é\tz"}),
        ("a=#1", {"a": "#1"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_lines_become_settings(text: str, found: dict[str, str]) -> None:
    assert parse(text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=1\n\n# x\na=2", "a is set twice, in lines 1 and 4"),
        ("a=1\n=2", "line 2 has no key"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(text)
