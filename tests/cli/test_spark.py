"""The package for other people's Spark is written where it was asked for."""

from pathlib import Path

from click.testing import CliRunner

from cli.spark import spark
from cli.version import VERSION
from spark_integration.jobs.package import build_package


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
