"""Spark's classes are stored for one Java and one Spark, and Spark starts without them as well."""

import os
from pathlib import Path

import pytest

from spark_integration.jobs import class_archive
from spark_integration.jobs.class_archive import archive_file, make, options, wanted_file
from spark_integration.jobs.errors import SparkError
from spark_integration.jobs.java import Java

# Stands for the program that has Java write the archive.
WRITES = """
import sys
from pathlib import Path

Path(sys.argv[1]).write_bytes(b"classes")
"""
FAILS = """
raise SystemExit("no memory for Java")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives are; Spark is installed, whatever this checkout has."""
    monkeypatch.setattr(class_archive, "FOLDER", tmp_path / "classes")
    monkeypatch.setattr(class_archive, "version", lambda _name: "4.3.0")
    return tmp_path / "classes"


def java(home: Path, build: str = "17.0.15+6") -> Java:
    return Java(home=home, version=17, origin="PATH", build=build)


def train(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    (folder / "training.py").write_text(program, encoding="utf-8")
    monkeypatch.setattr(class_archive, "ROOT", folder)
    monkeypatch.setattr(class_archive, "TRAINING", "training")


def test_spark_starts_with_the_archive_of_its_java_only(folder: Path, tmp_path: Path) -> None:
    file = archive_file(java(tmp_path))
    assert file is not None
    before = options(java(tmp_path))
    folder.mkdir()
    file.write_bytes(b"")

    assert before == ()
    assert options(java(tmp_path)) == (f'"-XX:SharedArchiveFile={file}"',)
    assert options(java(tmp_path, build="21.0.1+1")) == ()
    assert options(java(tmp_path, build="")) == ()
    assert options(None) == ()


def test_the_name_of_an_archive_is_one_of_a_file(tmp_path: Path) -> None:
    file = archive_file(java(tmp_path, build="17/0 (x)"))

    assert file is not None
    assert file.name == "spark-4.3.0-java-17-0--x-.jsa"


def test_one_is_wanted_where_java_has_an_archive_of_its_own_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive, "find_java", lambda _environment: java(tmp_path))
    without = wanted_file({})
    (tmp_path / "lib/server").mkdir(parents=True)
    (tmp_path / "lib/server/classes.jsa").write_bytes(b"")

    assert without is None
    assert wanted_file({}) == archive_file(java(tmp_path))


def test_an_archive_takes_the_place_of_former_ones(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path, monkeypatch, WRITES)
    folder.mkdir()
    (folder / "spark-4.2.0-java-17.jsa").write_bytes(b"")
    file = folder / "one.jsa"

    make(file, {"PATH": "/usr/bin"})

    assert list(folder.iterdir()) == [file]
    assert file.read_bytes() == b"classes"


def test_an_archive_that_is_not_made_leaves_nothing_and_says_why(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path, monkeypatch, FAILS)

    with pytest.raises(SparkError, match="Java made no archive: no memory for Java"):
        make(folder / "one.jsa", {"PATH": "/usr/bin"})

    assert list(folder.iterdir()) == []


def test_folders_of_processes_that_were_killed_are_removed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path, monkeypatch, WRITES)
    folder.mkdir()
    old, young = folder / "making-old", folder / "making-young"
    for made in (old, young):
        made.mkdir()
    os.utime(old, (0, 0))

    make(folder / "one.jsa", {"PATH": "/usr/bin"})

    assert sorted(path.name for path in folder.iterdir()) == ["making-young", "one.jsa"]


def test_unreadable_archive_counts_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)

    assert options(java(tmp_path)) == ()


def test_a_folder_that_is_not_to_be_written_is_named(folder: Path) -> None:
    folder.write_text("a file", encoding="utf-8")

    with pytest.raises(SparkError, match="was not made"):
        make(folder / "one.jsa", {})
