"""Nothing outside of `<home>/files` is opened, nor what belongs to writers of tables."""

import os
from pathlib import Path

import pytest

from connectors.sdk import home_files
from connectors.sdk.errors import ConfigError


def opened(text: str) -> int:
    parts = home_files.parts_of(text)
    with home_files.folder_of(parts) as folder:
        return home_files.open_file(parts[-1], folder, os.O_RDONLY)


@pytest.mark.parametrize(
    "text",
    [
        "../secrets/x",
        "a/../../x",
        "/etc/passwd",
        "",
        "/",
        ".",
        "a/.hidden",
        "a\0b",
        "x" * 241,
        "a/" * 40,
        "iceberg.db",
        "./iceberg.db-wal",
        "iceberg.db/x",
        "lake/orders/_samsa/0123456789abcdef/state.json",
        "lake/orders/_delta_log/00000000000000000000.json",
        "lake/orders/metadata/v1.metadata.json",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(files: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        home_files.parts_of(text)


def test_an_absolute_path_below_the_folder_is_taken(files: Path) -> None:
    (files / "a").mkdir()
    (files / "a" / "b.txt").write_text("b")

    with os.fdopen(opened(f"{files}/a/b.txt")) as file:
        assert file.read() == "b"


def test_no_symbolic_link_is_followed(files: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (files / "folder").symlink_to(outside)
    (files / "file").symlink_to(outside / "secret")

    for text in ("folder/secret", "file"):
        with pytest.raises(ConfigError, match="symbolic link"):
            opened(text)


def test_only_plain_files_are_opened(files: Path) -> None:
    os.mkfifo(files / "pipe")
    (files / "folder").mkdir()

    for text in ("pipe", "folder"):
        with pytest.raises(ConfigError, match="not a plain file"):
            opened(text)


def test_a_key_without_a_file_is_told_that_there_is_no_standard_input() -> None:
    told = home_files.problem(None)

    assert told is not None
    assert "standard input" in told
