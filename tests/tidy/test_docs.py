"""The pages speak of the tree as it is, and keep their size."""

import re
from pathlib import Path

import pytest

from tests.tidy.project import PRODUCT, ROOT, walk

ARCHITECTURE = Path("docs/architecture.md")
ARCHITECTURE_LINES = 300
FILE_MAP = Path("docs/file-map.md")
DECISION_LINES = 80
# Pages about what is there now; the architecture page also tells what is to come.
PRESENT_PAGES = [Path("README.md"), Path("CONTRIBUTING.md"), Path("docs/gaps.md")]
PRESENT_PAGES += [path for path in walk() if path.parts[:2] == ("docs", "howto") and path.suffix]
DECISIONS = [path for path in walk() if path.parts[:2] == ("docs", "decisions") and path.suffix]

# A path in backticks, without a placeholder, below one of the folders of the project.
NAMED_PATH = re.compile(r"`((?:brokers|cli|bench|tests|docs|\.ci)/[\w./-]+)`")


def text_of(page: Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PRESENT_PAGES, ids=str)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    named = NAMED_PATH.findall(text_of(page))

    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_file_map_lists_modules_that_exist() -> None:
    names = {path.name for path in walk()}

    listed = re.findall(r"(?<![\w>-])([\w-]+\.(?:py|md|toml))\b", text_of(FILE_MAP))

    assert len(listed) > 20
    assert [name for name in listed if name not in names] == []


def test_the_file_map_has_a_heading_or_a_row_for_each_folder_of_the_product() -> None:
    first_columns = [line.split(" | ")[0] for line in text_of(FILE_MAP).splitlines()]
    places = "".join(text for text in first_columns if text.startswith(("#", "|")))
    modules = [path for path in walk() if path.suffix == ".py" and path.name != "__init__.py"]
    folders = {path.parent for path in modules if path.parts[0] in {*PRODUCT, "bench"}}

    assert len(folders) > 50
    assert sorted(str(folder) for folder in folders if f"`{folder}/" not in places) == []


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
