"""Edges between files: imports, names in strings, tables, and what frameworks find."""

import pytest

from tests.suite.graph import Graph
from tests.tidy.project import Source


def graph(**texts: str) -> Graph:
    """Make a graph of modules by dotted name; `__` stands for a dot in the name."""
    paths = {f"{name.replace('__', '/')}.py": text for name, text in texts.items()}
    return Graph({path: Source.parse(path, text) for path, text in paths.items()})


@pytest.mark.parametrize(
    "text",
    [
        "import a.log",
        "from a import log",
        "from a.log import append",
        "import a.log as other",
        "def late():\n    from a.log import append",
        'patch("a.log.append")',
        'table = "log"\nimport_module(f"a.{table}")',
        'START = ["-m", "a.log"]',
    ],
)
def test_a_file_needs_what_its_text_names(text: str) -> None:
    made = graph(a__log="", b=text)

    assert made.needs["b.py"] == {"a/log.py"}
    assert made.users["a/log.py"] == {"b.py"}


@pytest.mark.parametrize("text", ["import other", '"a.logs"', '"a log"', 'f"{a}.log"', "# a.log"])
def test_what_only_looks_like_a_name_is_no_need(text: str) -> None:
    assert graph(a__log="", b=text).needs["b.py"] == frozenset()


def test_a_package_that_is_named_as_a_program_needs_its_main_module() -> None:
    sources = {
        path: Source.parse(path, text)
        for path, text in {
            "a/b/__init__.py": "",
            "a/b/__main__.py": "",
            "c.py": 'run("-m", "a.b")',
        }.items()
    }

    assert Graph(sources).needs["c.py"] == {"a/b/__init__.py", "a/b/__main__.py"}


def test_what_django_finds_hangs_on_the_configuration_of_its_app() -> None:
    made = graph(app__apps="", app__models="", app__migrations__first="", app__other="")

    assert made.needs["app/apps.py"] == {"app/models.py", "app/migrations/first.py"}


def test_a_test_needs_the_conftest_files_above_it() -> None:
    made = graph(
        tests__conftest="", tests__a__conftest="", tests__a__test_x="", tests__b__test_y=""
    )

    assert made.needs["tests/a/test_x.py"] == {"tests/conftest.py", "tests/a/conftest.py"}
    assert made.needs["tests/b/test_y.py"] == {"tests/conftest.py"}


def test_a_change_reaches_through_others_also_in_circles() -> None:
    made = graph(
        a__one="import a.two", a__two="import a.one", b="import a.one", c="import b.x", d=""
    )

    assert made.reached_from(["a/two.py"]) == {"a/one.py", "a/two.py", "b.py", "c.py"}
    assert made.reached_from(["gone.py"]) == set()
