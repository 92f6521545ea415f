"""The connector of docs/howto/write-a-connector.md is found, and keeps the contract."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors import registry
from connectors.sdk import contract
from connectors.sdk.connector import SourceConnector
from connectors.sdk.testing import MemorySourceContext, parse_config, run_source

HOWTO = Path(__file__).resolve().parents[3] / "docs" / "howto" / "write-a-connector.md"
CONFIG = {"topic": "t", "from": "9"}


def block(language: str) -> str:
    """Return the first block of the page in a language."""
    found = re.search(rf"```{language}\n(.*?)```", HOWTO.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"the page has a block of {language}"
    return found[1]


@pytest.fixture
def countdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[SourceConnector]]:
    """Install the package of the page as pip does: a module beside what is said of it."""
    (tmp_path / "countdown").mkdir()
    (tmp_path / "countdown" / "__init__.py").write_text(block("python"))
    entry = re.search(r'\[project.entry-points."([\w.]+)"\]\n(\w+) = "(.*?)"', block("toml"))
    assert entry, "the page names an entry point"
    about = tmp_path / "countdown-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: countdown\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{entry[1]}]\n{entry[2]} = {entry[3]}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.forget()
    try:
        found = registry.find("example.countdown")
        assert found is not None, f"it is found: {registry.broken()}"
        assert issubclass(found, SourceConnector), "it is a source"
        yield found
    finally:
        registry.forget()
        sys.modules.pop("countdown", None)


def test_the_connector_of_the_page_has_forty_lines() -> None:
    lines = [line for line in block("python").splitlines() if line.strip()]

    assert len(lines) <= 40


def test_the_connector_of_the_page_is_found_and_keeps_the_contract(
    countdown: type[SourceConnector],
) -> None:
    assert registry.is_foreign(countdown)
    contract.definition_is_sound(countdown)
    contract.tasks_are_told_what_is_defined(countdown(), CONFIG)
    contract.secrets_stay_hidden(countdown(), CONFIG)
    contract.source_resumes(countdown(), CONFIG)


def test_the_connector_of_the_page_counts_down(countdown: type[SourceConnector]) -> None:
    parsed = parse_config(countdown.definition(), CONFIG)

    records = run_source(countdown(), parsed, MemorySourceContext())

    assert [record.value for record in records] == [8, 7, 6, 5, 4, 3, 2, 1, 0]
