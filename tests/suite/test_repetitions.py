"""The page of repetitions says what the tests do."""

from tests.suite.repetitions import PAGE, Row, page, rows
from tests.tidy.project import Source, sources

COUNTS = """
from tests.scale import count
STEPS = count(10, 20, long=1_000)
SHARE = count(8, 16) // 4
PLACES = PLACES[: count(1, len(PLACES))]

@settings(max_examples=count(1, 2, long=3))
def test_decorated():
    total = [each for each in range(count(4, 5, long=6))]
"""


def test_counts_are_found_with_the_name_of_what_repeats() -> None:
    found = list(rows(Source.parse("tests/a/test_b.py", COUNTS)))

    assert found == [
        Row(path="tests/a/test_b.py", what="STEPS", counts=(10, 20, 1_000)),
        Row(path="tests/a/test_b.py", what="SHARE", counts=(8, 16, 16)),
        Row(path="tests/a/test_b.py", what="test_decorated", counts=(4, 5, 6)),
        Row(path="tests/a/test_b.py", what="test_decorated", counts=(1, 2, 3)),
    ]


def test_a_count_of_another_module_is_none_of_ours() -> None:
    assert list(rows(Source.parse("a.py", "from itertools import count\nX = count(1, 2)"))) == []


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")

    assert written == page(sources()), "python -m tests.suite.repetitions writes the page"
