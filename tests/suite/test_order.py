"""Which tests stay together, and what begins first."""

from pathlib import Path

import pytest

from tests.suite import order
from tests.suite.order import (
    LONG_SECONDS,
    SPARK,
    UNIT_SECONDS,
    Queue,
    plan,
    unit_of_file,
    with_guesses,
)


def apart(_path: str) -> None:
    """Every file's tests may go their own ways."""


def units(seconds: dict[str, float], **together: str) -> list[list[str]]:
    files = {f"{stem}.py": unit for stem, unit in together.items()}
    return list(plan(list(seconds), seconds, files.get).values())


def test_long_work_begins_first_and_short_tests_of_a_file_stay_together() -> None:
    seconds = {"a.py::one": 0.1, "b.py::long": 20.0, "a.py::two": 0.1, "b.py::short": 0.5}

    assert units(seconds) == [["b.py::long"], ["b.py::short"], ["a.py::one", "a.py::two"]]


def test_tests_that_share_a_fixture_stay_together_even_when_they_are_long() -> None:
    seconds = {"a.py::one": 9.0, "b.py::one": 10.0, "a.py::two": 9.0}

    assert units(seconds, a="a.py") == [["a.py::one", "a.py::two"], ["b.py::one"]]


def test_files_may_share_a_unit() -> None:
    assert units({"a.py::one": 0.1, "b.py::one": 0.1}, a="both", b="both") == [
        ["a.py::one", "b.py::one"]
    ]


def test_a_unit_that_is_too_long_is_divided() -> None:
    seconds = {f"a.py::{number}": UNIT_SECONDS * 0.45 for number in range(5)}

    assert [len(unit) for unit in units(seconds, a="a.py")] == [2, 2, 1]


def test_what_shares_a_spark_stays_whole_however_long_it_takes() -> None:
    seconds = {f"a.py::{number}": UNIT_SECONDS for number in range(3)}

    assert [len(unit) for unit in units(seconds, a="tests/spark")] == [3]


def test_every_test_is_in_one_unit_and_in_the_order_of_its_file() -> None:
    seconds = {f"{stem}.py::{number}": number / 7 for stem in "abc" for number in range(60)}

    planned = units(seconds, a="a.py", b="both", c="both")

    assert sorted(name for unit in planned for name in unit) == sorted(seconds)
    assert all(unit == [name for name in seconds if name in unit] for unit in planned)
    assert LONG_SECONDS < 60 / 7


def test_a_file_says_by_its_text_what_it_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "ROOT", tmp_path)
    unit_of_file.cache_clear()
    (tmp_path / "cluster.py").write_text('@pytest.fixture(scope="module")\n', encoding="utf-8")
    (tmp_path / "rules.py").write_text(
        "from tests.tidy.project import ROOT, sources\n", encoding="utf-8"
    )
    (tmp_path / "pages.py").write_text("from tests.tidy.pages import MAP, pages\n", "utf-8")
    (tmp_path / "plain.py").write_text("def test_x(): ...\n", encoding="utf-8")

    found = [unit_of_file(name) for name in ("cluster.py", "rules.py", "pages.py", "plain.py")]

    unit_of_file.cache_clear()
    assert found == ["cluster.py", "tests/tidy", "tests/tidy", None]
    assert unit_of_file("gone.py") is None


@pytest.mark.parametrize(
    "signature",
    [
        "def test_one(spark: Any) -> None: ...",
        "def test_two(\n    spark: Any, bootstrap: str\n) -> None: ...",
        "def test_three(\n    tmp_path: Path,\n    spark: SparkSession,\n) -> None: ...",
        "def test_four(\n    tmp_path: Path, spark: Any, door: str\n) -> None: ...",
    ],
)
def test_files_that_use_the_spark_of_all_share_a_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signature: str
) -> None:
    monkeypatch.setattr(order, "ROOT", tmp_path)
    unit_of_file.cache_clear()
    (tmp_path / "jobs.py").write_text(signature, encoding="utf-8")

    found = unit_of_file("jobs.py")

    unit_of_file.cache_clear()
    assert found == SPARK


def test_what_was_not_measured_is_guessed() -> None:
    known = with_guesses(["a.py::one", "a.py::new"], {"a.py::one": 3.0})

    assert known == {"a.py::one": 3.0, "a.py::new": 0.02}


def test_waiting_work_is_taken_in_the_order_of_the_plan() -> None:
    queue = Queue()
    queue.update({"c": {}, "a": {}, "b": {}})
    queue.ranks = {"a": 0, "b": 1, "c": 2}

    assert [queue.popitem(last=False)[0] for _ in range(3)] == ["a", "b", "c"]
