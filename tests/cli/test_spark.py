"""The package for other people's Spark is written where it was asked for; servers have a secret."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokers.release import VERSION
from cli.spark import spark
from spark_integration.jobs.package import build_package
from tests.extras import requires

SHARED = "shared-secret"


def test_wheel_and_zip_are_written_and_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(spark, ["package", "--out", str(tmp_path / "new" / "dist")])

    built = build_package(VERSION)
    wheel, archive = (Path(line) for line in done.output.splitlines())
    assert done.exit_code == 0
    assert (wheel.name, archive.name) == (built.wheel_name, built.zip_name)
    assert (wheel.read_bytes(), archive.read_bytes()) == (built.wheel, built.zip)
    assert sorted(wheel.parent.iterdir()) == sorted([wheel, archive])


def test_a_folder_that_cannot_be_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = CliRunner().invoke(spark, ["package", "--out", str(tmp_path / "file" / "below")])

    assert done.exit_code == 1
    assert "name another folder with --out" in done.output


class Became(Exception):
    """What the process would have gone on as."""


@requires("java", "spark")
@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["server", "--port", "15999"], "spark-submit"),
        (["master"], "spark-class"),
        (["worker", "--cores", "1", "spark://127.0.0.1:7077"], "spark-class"),
    ],
)
def test_a_server_of_spark_runs_in_the_place_of_the_command_with_its_secret_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], program: str
) -> None:
    def execve(path: str, command: tuple[str, ...], environment: dict[str, str]) -> None:
        assert Path.cwd().is_relative_to(tmp_path)
        assert SHARED not in " ".join(command)
        assert SHARED in environment.values()
        raise Became(Path(path).name)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execve", execve)

    done = CliRunner().invoke(
        spark, [words[0], "--home", str(tmp_path), *words[1:]], env={"SAMSA_SPARK_TOKEN": SHARED}
    )

    assert repr(done.exception) == repr(Became(program))


def test_no_server_is_started_without_a_secret(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        spark, ["server", "--home", str(tmp_path)], env={"SAMSA_SPARK_TOKEN": None}
    )

    assert done.exit_code == 1
    assert "SAMSA_SPARK_TOKEN is not set" in done.output
