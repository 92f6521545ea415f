"""Pages describe the tree as it is, and keep their size."""

import re
from pathlib import Path

import pytest

from tests.tidy.pages import COMMAND, MAP, PAGES, pages
from tests.tidy.project import ROOT, walk

ARCHITECTURE = Path("docs/architecture.md")
ARCHITECTURE_LINES = 150
DECISION_LINES = 80
# Pages whose paths and links exist.
PRESENT_PAGES = [Path("README.md"), Path("CONTRIBUTING.md"), Path("docs/gaps.md"), ARCHITECTURE]
PRESENT_PAGES += [Path("docs/README.md"), MAP / "README.md", Path("tests/stories/README.md")]
PRESENT_PAGES += [path for path in walk() if path.parts[:2] == ("docs", "howto") and path.suffix]
DECISIONS = [path for path in walk() if path.parts[:2] == ("docs", "decisions") and path.suffix]

# A path in backticks, without a placeholder, below one of the folders of the project.
NAMED_PATH = re.compile(r"`((?:brokers|cli|bench|tests|docs|\.ci)/[\w./-]+)`")
# The target of a link within the project.
LINK = re.compile(r"\]\(([\w./-]+)\)|(?:src|srcset)=\"([\w./-]+)\"")


def text_of(page: Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PRESENT_PAGES, ids=str)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    named = NAMED_PATH.findall(text_of(page))

    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PRESENT_PAGES, ids=str)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    targets = ["".join(found) for found in LINK.findall(text_of(page))]

    assert [each for each in targets if not (ROOT / page.parent / each).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_generated_page_follows_from_the_code(page: Path) -> None:
    assert text_of(page) == pages()[page], f"renew it with `{COMMAND}`"


def test_map_by_hand_lists_files_that_exist() -> None:
    names = {path.name for path in walk()}

    listed = re.findall(r"(?<![\w>-])([\w-]+\.(?:py|md|toml|js))\b", text_of(MAP / "README.md"))

    assert len(listed) > 20
    assert [name for name in listed if name not in names] == []


def test_the_architecture_page_can_be_read_in_one_sitting() -> None:
    assert len(text_of(ARCHITECTURE).splitlines()) <= ARCHITECTURE_LINES


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_is_numbered_short_and_says_what_was_refused(page: Path) -> None:
    text = text_of(page)

    assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", page.name)
    assert len(text.splitlines()) <= DECISION_LINES
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["Context", "Decision", "Consequences", "Refused"]


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(page.name[:4]) for page in DECISIONS]

    assert numbers == list(range(1, len(numbers) + 1))
