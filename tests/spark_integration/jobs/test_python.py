"""Spark's Python workers take the modules of Spark that are installed, not those of its zip."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_integration.jobs import python
from spark_integration.jobs.python import NAME, prepare_python
from tests.extras import requires


@pytest.fixture(autouse=True)
def zips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the zips of Spark are: in a folder with blanks."""
    folder = tmp_path / "its packages" / "lib"
    monkeypatch.setattr(python, "zips_of_spark", lambda: folder)
    return folder


def test_choice_of_the_user_is_taken(tmp_path: Path) -> None:
    chosen = prepare_python(tmp_path, {"PYSPARK_PYTHON": "/their/python"}, is_near=True)

    assert chosen == "/their/python"


@pytest.mark.parametrize(
    ("environment", "is_near"),
    [({}, False), ({"SPARK_HOME": "/opt/spark"}, True)],
    ids=["workers elsewhere", "a Spark of the user's"],
)
def test_without_a_spark_of_ours_it_is_this_python(
    tmp_path: Path, environment: dict[str, str], is_near: bool
) -> None:
    assert prepare_python(tmp_path, environment, is_near=is_near) == sys.executable
    assert list(tmp_path.glob(NAME)) == []


def test_the_door_takes_the_zips_of_spark_away_and_nothing_else(tmp_path: Path, zips: Path) -> None:
    door = prepare_python(tmp_path / "spark", {}, is_near=True)
    paths = [f"{zips}/pyspark.zip", f"{zips}/py4j-1-src.zip", "/x/core.jar", "/my *", str(zips)]

    code = "import os, sys; print(os.environ['PYTHONPATH'], sys.prefix, *sys.argv[1:], sep='|')"
    said = subprocess.run(
        [door, "-c", code, "a b", "*"],
        env={"PYTHONPATH": ":".join([*paths, *paths])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    kept = ["/x/core.jar", "/my *", str(zips)]
    assert said.rstrip().split("|") == [":".join([*kept, *kept]), sys.prefix, "a b", "*"]


def test_setting_of_an_earlier_session_is_not_a_choice_of_the_user(tmp_path: Path) -> None:
    first = prepare_python(tmp_path / "one", {}, is_near=True)

    second = prepare_python(tmp_path / "two", {"PYSPARK_PYTHON": first}, is_near=True)

    assert second == str(tmp_path / "two" / NAME)


@requires("spark")
def test_the_zips_of_the_package_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    zips = python.zips_of_spark()

    assert zips is not None
    assert (zips / "pyspark.zip").is_file()
