"""Texts for users and names of tests are plain, and each word that is not plain is found."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.tidy.project import ROOT, Source, product, sources, walk
from tests.tidy.wording import DIALECT, complaints, dialect, dialect_of_page

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

# Pages of the console and of the documentation for users.
PAGES = [
    path
    for path in walk()
    if (path.suffix in {".html", ".js"} and path.parts[0] == "console")
    or (path.suffix == ".md" and path.parts[:2] == ("docs", "howto"))
    or (path.name == "README.md" and path.parts[:2] != ("tests", "data"))
    or str(path) in {"docs/architecture.md", "docs/groups.md", "docs/protocol.md"}
    if "vendor" not in path.parts
]

# Names of tests from before they had to be plain, one per line. A name leaves the list when its
# test gets a better one or goes; none is added.
OLD_NAMES = frozenset((ROOT / "tests/tidy/old_names.txt").read_text(encoding="utf-8").split())
# Lower it with the list.
OLD_NAMES_AT_MOST = 1_127

# A text for each entry of the table, in its order.
BREACHES = (
    "nobody reads it",
    "somebody changed it",
    "ask whoever runs it",
    "the session begins anew",
    "the broker tells its address",
    "the topic stands twice",
    "the offset lies after the end",
    "the log is not to be had",
    "there are none",
    "it is none of a, b",
    "a number, and 'x' is none",
    "'x' is no number",
    "the task goes on",
    "retries for ever",
    "waited in vain",
    "in so far as it is known",
    "does not exist any more",
    "for replicas as people know them",
    "the connection gives way",
)


def test_texts_of_the_product_are_plain() -> None:
    found = [complaint for source in product() for complaint in dialect(source)]

    assert found == []


def test_pages_are_plain() -> None:
    found = [
        complaint
        for page in PAGES
        for complaint in dialect_of_page(page, (ROOT / page).read_text(encoding="utf-8"))
    ]

    assert len(PAGES) > 100
    assert found == []


def test_new_names_of_tests_are_plain() -> None:
    found = [
        complaint
        for source, test in named_functions(sources())
        if test.name not in OLD_NAMES
        for complaint in dialect_of_name(source, test)
    ]

    assert found == []


def test_list_of_old_names_only_gets_shorter() -> None:
    assert len(OLD_NAMES) <= OLD_NAMES_AT_MOST


def test_dialect_in_the_name_of_a_test_is_found() -> None:
    source = Source.parse("tests/test_x.py", "def test_what_lies_is_no_subscription() -> None: ...")
    [(_, test)] = named_functions([source])

    assert len(list(dialect_of_name(source, test))) > 0


def named_functions(all_sources: Iterable[Source]) -> Iterator[tuple[Source, Function]]:
    """Yield the functions of the suite that pytest calls."""
    for source in all_sources:
        if source.top == "tests" and source.path.stem.startswith("test_"):
            for function in source.functions():
                if function.name.startswith("test_"):
                    yield source, function


def dialect_of_name(source: Source, test: Function) -> Iterator[str]:
    words = test.name.removeprefix("test_").replace("_", " ")
    return complaints(source.path, test.lineno, words)


@pytest.mark.parametrize(("word", "text"), [*zip(DIALECT, BREACHES, strict=True)])
def test_each_word_of_the_table_is_found(word: str, text: str) -> None:
    source = Source.parse("brokers/x.py", f"raise Refused({text!r})")

    assert [each.rpartition("write ")[2] for each in dialect(source)] == [DIALECT[word]]


@pytest.mark.parametrize(
    "text",
    [
        'raise Refused("What is written and read just now is not known.")',
        'raise Refused(f"{name} exists. Who reads it at the moment is unknown.")',
        'raise Refused("the topic"\n    " stands twice")',
        'raise Refused(f"{name} stands {count} times")',
        '@click.command()\ndef logs():\n    """Go on as lines come."""',
    ],
)
def test_a_planted_breach_in_python_is_found(text: str) -> None:
    assert len(list(dialect(Source.parse("cli/x.py", text)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        '"""Nobody reads a docstring but us."""',
        "def told():\n    return shown['told'], 'anew'",
        "# nobody\nx = 1",
        'Heading("What it means")',
        'Question("What happens to the records that are not read yet?")',
    ],
)
def test_python_that_users_do_not_read_passes(text: str) -> None:
    assert list(dialect(Source.parse("cli/x.py", text))) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.html", "<p>{{ name }}: nobody reads it</p>"),
        ("x.html", '<p title="nobody reads it">{{ name }}</p>'),
        ("x.html", '{% include "a.html" with title="nobody reads it" %}'),
        ("x.html", "<h2>Which groups there are is not known</h2>"),
        ("x.js", "// A comment.\nshow(`${name}: nobody reads it`);"),
        ("x.js", 'show("nobody reads it");'),
        ("x.md", "The slot, which nobody reads, fills `disk`."),
    ],
)
def test_a_planted_breach_in_a_page_is_found_at_its_line(name: str, text: str) -> None:
    [complaint] = dialect_of_page(Path(name), f"\n\n{text}")

    assert complaint.startswith(f"{name}:{3 + text.count(chr(10))}: ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.html", '{# nobody #}<p class="told">{{ told }}{% if told %}</p><script>told</script>'),
        ("x.html", '<th scope="col">Who</th><th scope="col">What it means</th>'),
        ("x.js", 'const told = await read("told"); // nobody'),
        ("x.md", "Run `told = ask()`:\n```\nnobody\n```\n"),
    ],
)
def test_names_and_code_in_a_page_pass(name: str, text: str) -> None:
    assert list(dialect_of_page(Path(name), text)) == []
