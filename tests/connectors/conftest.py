"""Fixtures of the connectors' tests: fresh databases, and a connector that tests make up."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.database import project_home, sqlite_databases

project_home()


from connectors import registry, selectors  # noqa: E402
from gateway.access import changes as access_changes  # noqa: E402
from tests.connectors import invented  # noqa: E402


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[None]:
    """Fresh tables, keys of their own, and the invented connectors beside those of the house."""
    found = registry._found()  # noqa: SLF001 - added to, for this test
    by_name = dict(found.by_name)
    for plugin in invented.ALL:
        by_name |= dict.fromkeys(registry.names_of(plugin), plugin)
    added = registry.Found(
        by_name=by_name,
        classes=(*found.classes, *invented.ALL),
        foreign=found.foreign,
        broken=(),
    )
    monkeypatch.setattr(registry, "_found", lambda: added)
    # What waits is looked at here, and not taken over into an audit.
    monkeypatch.setattr(access_changes, "deliver", lambda: None)
    selectors.vault.cache_clear()
    settings.SAMSA_CONNECT_KEY_FILE, settings.SAMSA_HOME = tmp_path / "keys", tmp_path
    with sqlite_databases(tmp_path):
        yield
    selectors.vault.cache_clear()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the empty folder of files of a home that the process believes to be its own."""
    monkeypatch.setenv("SAMSA_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "files"
    folder.mkdir(parents=True)
    return folder
