"""What only some connectors need is listed, and installed by its name."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli import extra_packages
from cli.environment import EXTRAS
from cli.extra_packages import extras
from cli.installer import InstallError
from spark_integration.jobs import class_archive
from spark_integration.jobs.errors import SparkError
from spark_integration.jobs.java import Java


class Installed:
    """Stands for the environment: notes what is to be installed."""

    names: set[str]
    failure: InstallError | None

    def __init__(self) -> None:
        self.names = set()
        self.failure = None

    def has(self, name: str) -> bool:
        return name in self.names

    def ensure(self, name: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.names.add(name)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    environment = Installed()
    monkeypatch.setattr(extra_packages, "Environment", lambda: environment)
    # As where Java has Spark's classes already.
    monkeypatch.setattr(class_archive, "wanted_file", lambda _environment: None)
    return environment


def test_the_list_says_what_is_there_and_what_it_is_for(installed: Installed) -> None:
    before = CliRunner().invoke(extras, ["list"]).output
    installed.names.add("parquet")
    after = CliRunner().invoke(extras, ["list"]).output

    assert "missing" in before
    assert "installed" in after
    assert EXTRAS["parquet"].purpose in after


def test_extras_are_installed_by_name(installed: Installed) -> None:
    result = CliRunner().invoke(extras, ["install", "parquet"])

    assert (result.exit_code, installed.names) == (0, {"parquet"})


def test_a_name_that_is_none_is_refused_with_those_that_are(installed: Installed) -> None:
    result = CliRunner().invoke(extras, ["install", "parquet", "spork"])

    assert (result.exit_code, installed.names) == (1, set())
    assert "unknown extra: spork; choose from parquet" in result.output


def test_what_cannot_be_installed_is_said(installed: Installed) -> None:
    installed.failure = InstallError("no network")

    result = CliRunner().invoke(extras, ["install", "parquet"])

    assert result.exit_code == 1
    assert "parquet: no network" in result.output


@pytest.mark.parametrize(("has_java", "names"), [(True, {"spark"}), (False, {"spark", "java"})])
def test_spark_comes_with_a_java_where_the_machine_has_none(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, names: set[str], *, has_java: bool
) -> None:
    java = Java(home=Path("/java"), version=17, origin="PATH") if has_java else None
    monkeypatch.setattr(extra_packages, "machine_java", lambda environment: java)

    result = CliRunner().invoke(extras, ["install", "spark"])

    assert (result.exit_code, installed.names) == (0, names)


def test_spark_is_installed_also_where_java_does_not_store_its_classes(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(file: Path, _environment: object) -> None:
        raise SparkError(f"{file.name} was not made")

    monkeypatch.setattr(class_archive, "wanted_file", lambda _environment: tmp_path / "one.jsa")
    monkeypatch.setattr(class_archive, "make", fail)

    monkeypatch.setattr(os, "nice", lambda _step: 0)

    result = CliRunner().invoke(extras, ["install", "spark"])
    later = CliRunner().invoke(extras, ["install", "--without-classes", "spark"])

    assert (result.exit_code, later.exit_code) == (0, 0)
    assert "spark" in installed.names
    assert "Spark will start slower: one.jsa was not made" in result.output
    assert "Spark's classes" not in later.output
