"""Plugins in a home's own folder: found, told from where, and loaded only from its owner."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from connectors import home_plugins, registry, selectors

PLUGIN = """
from connectors.sdk.configs import Definition
from connectors.sdk.connector import SourceConnector

from .place import TITLE


class Clouds(SourceConnector):
    name = "example.clouds"
    title = TITLE
    summary = "Counts clouds."

    @classmethod
    def definition(cls):
        return Definition()

    def task_configs(self, parsed, *, max_tasks):
        return [{}]

    def task(self):
        raise NotImplementedError


CONNECTORS = (Clouds,)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A private home, in which the registry searches for plugins again."""
    os.chmod(tmp_path, 0o700)
    monkeypatch.setattr(settings, "SAMSA_HOME", tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    registry.forget()
    yield tmp_path
    registry.forget()
    for name in set(sys.modules) - before:
        if name.startswith(registry.HOME_PACKAGE):
            del sys.modules[name]


def write(home: Path, name: str = "clouds", text: str = PLUGIN) -> Path:
    folder = home / "plugins" / name
    folder.mkdir(parents=True, mode=0o755)
    for file, content in {"__init__.py": text, "place.py": 'TITLE = "Clouds"\n'}.items():
        (folder / file).write_text(content)
        (folder / file).chmod(0o644)
    (home / "plugins").chmod(0o755)
    folder.chmod(0o755)
    return folder


def reasons() -> dict[str, str]:
    return {one.origin: one.reason for one in selectors.broken_plugins()}


def test_a_folder_is_found_and_told_from_where(home: Path) -> None:
    write(home)

    plugin = next(one for one in selectors.catalogue() if one.name == "example.clouds")

    assert (plugin.title, plugin.origin, plugin.is_foreign) == ("Clouds", "plugins/clouds", True)
    assert reasons() == {}


def test_a_home_without_plugins_has_none(home: Path) -> None:
    assert list(home_plugins.found(home)) == []
    assert all(not one.origin for one in selectors.catalogue())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nobody_has_this", "ModuleNotFoundError: No module named 'nobody_has_this'"),
        ("x = (", "SyntaxError: "),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("", "has no attribute 'CONNECTORS'"),
        ("CONNECTORS = 5", "'int' object is not iterable"),
        (
            "CONNECTORS = (5,)",
            "int is not a SourceConnector, SinkConnector or JobConnector with a name",
        ),
        (PLUGIN.replace("return Definition()", "return 5"), "Clouds.definition() is a int"),
        (PLUGIN.replace("return Definition()", "return 1 / 0"), "ZeroDivisionError"),
        (PLUGIN.replace("example.clouds", "samsa.datagen"), "there is another samsa.datagen"),
    ],
)
def test_a_broken_one_is_told_and_hides_nobody(home: Path, text: str, reason: str) -> None:
    write(home, "broken", text)
    write(home)

    assert registry.find("example.clouds") is not None
    assert registry.find("samsa.datagen") is not None
    assert reason in reasons()["plugins/broken"]


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
@pytest.mark.parametrize("what", [".", "plugins", "plugins/clouds", "plugins/clouds/place.py"])
def test_what_others_may_write_is_not_loaded(home: Path, what: str, mode: int) -> None:
    write(home)
    (home / what).chmod(mode)

    assert registry.find("example.clouds") is None
    [reason] = reasons().values()
    assert "other users may write" in reason
    assert "run `chmod -R go-w" in reason


@pytest.mark.parametrize("what", ["plugins", "plugins/clouds", "plugins/clouds/place.py"])
def test_a_link_is_not_followed(home: Path, tmp_path: Path, what: str) -> None:
    write(home)
    elsewhere = tmp_path / "elsewhere"
    (home / what).rename(elsewhere)
    (home / what).symlink_to(elsewhere)

    assert registry.find("example.clouds") is None
    [reason] = reasons().values()
    assert "is a symbolic link, whose target others may change: copy the files" in reason


def test_what_belongs_to_another_user_is_not_loaded(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home)
    monkeypatch.setattr(home_plugins, "ROOT", -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)

    [reason] = [one.refusal for one in home_plugins.found(home)]

    assert "belongs to user" in reason
    assert "give it to user 4711 (chown)" in reason


def test_other_names_are_left_alone(home: Path) -> None:
    write(home, "__pycache__")
    write(home, ".git")
    (home / "plugins" / "README").write_text("")

    assert list(home_plugins.found(home)) == []


def test_a_folder_without_a_beginning_says_so(home: Path) -> None:
    (write(home) / "__init__.py").unlink()

    assert "has no __init__.py: it names the plugin's classes as CONNECTORS" in str(reasons())
