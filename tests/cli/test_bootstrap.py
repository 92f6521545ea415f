"""Which cluster a command means, and how it tells a failure."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.bootstrap import (
    BOOTSTRAP_VARIABLE,
    EXIT_CODES,
    MAX_SETTINGS_BYTES,
    USUAL_BOOTSTRAP,
    bootstrap_of,
    reaches_cluster,
)
from gateway.kafka.connection import Connection
from gateway.kafka.errors import Kind, failure


@click.command
@reaches_cluster
def echo(*, connection: Connection) -> None:
    click.echo(f"{connection.bootstrap} {connection.timeout_s} {dict(connection.properties)}")


def home_with(tmp_path: Path, settings: str) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.json").write_text(settings, encoding="utf-8")
    return tmp_path


def test_the_option_names_the_cluster_before_everything_else(tmp_path: Path) -> None:
    home = home_with(tmp_path, json.dumps({"bootstrap": "home:1"}))
    variables = {BOOTSTRAP_VARIABLE: "variable:1"}

    ran = CliRunner(env=variables).invoke(echo, ["-b", "option:1", "--home", str(home)])

    assert ran.stdout.startswith("option:1 ")


def test_the_variable_comes_before_the_home(tmp_path: Path) -> None:
    home = home_with(tmp_path, json.dumps({"bootstrap": "home:1"}))

    ran = CliRunner(env={BOOTSTRAP_VARIABLE: "variable:1"}).invoke(echo, ["--home", str(home)])

    assert ran.stdout.startswith("variable:1 ")


def test_the_home_knows_where_its_cluster_is(tmp_path: Path) -> None:
    home = home_with(tmp_path, json.dumps({"bootstrap": "home:1,home:2"}))

    ran = CliRunner(env={BOOTSTRAP_VARIABLE: None}).invoke(echo, ["--home", str(home)])

    assert ran.stdout.startswith("home:1,home:2 ")


def test_without_anything_else_it_is_kafkas_usual_address(tmp_path: Path) -> None:
    ran = CliRunner(env={BOOTSTRAP_VARIABLE: None}).invoke(echo, ["--home", str(tmp_path)])

    assert ran.stdout.startswith(f"{USUAL_BOOTSTRAP} ")


@pytest.mark.parametrize(
    "settings", ["", "no json", "[]", "{}", '{"bootstrap": 7}', " " * MAX_SETTINGS_BYTES + "{}"]
)
def test_a_home_with_odd_settings_is_no_home(tmp_path: Path, settings: str) -> None:
    assert bootstrap_of(home_with(tmp_path, settings)) is None


def test_properties_go_to_the_client_as_they_are() -> None:
    ran = CliRunner().invoke(echo, ["-b", "a:1", "-X", "sasl.username=a=b", "--timeout", "2"])

    assert ran.stdout == "a:1 2.0 {'sasl.username': 'a=b'}\n"


def test_a_property_without_a_value_is_a_wrong_command_line() -> None:
    ran = CliRunner().invoke(echo, ["-X", "nonsense"])

    assert ran.exit_code == 2
    assert "'nonsense' is not a property of the form KEY=VALUE" in ran.stderr


def test_every_kind_of_failure_has_its_exit_code() -> None:
    assert EXIT_CODES == {
        Kind.FAILED: 1,
        Kind.USAGE: 2,
        Kind.NOT_FOUND: 3,
        Kind.CONFLICT: 4,
        Kind.TIMEOUT: 5,
    }


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("KAFKA_STORAGE_ERROR", 1),
        ("UNKNOWN_TOPIC_OR_PARTITION", 3),
        ("TOPIC_ALREADY_EXISTS", 4),
        ("REQUEST_TIMED_OUT", 5),
    ],
)
def test_a_failure_is_told_with_its_next_step(name: str, code: int) -> None:
    @click.command
    @reaches_cluster
    def fail(*, connection: Connection) -> None:
        raise failure(name, connection.bootstrap)

    ran = CliRunner().invoke(fail, ["-b", "a:1"])

    assert ran.exit_code == code
    assert ran.stdout == ""
    first, second = ran.stderr.splitlines()
    assert first.startswith("Error: a:1: ")
    assert name in first
    assert second.startswith("Next: ")
