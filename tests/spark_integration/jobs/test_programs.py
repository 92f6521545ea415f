"""Programs of Spark's own are started with a secret, which no command shows."""

import os
import stat
from pathlib import Path

import pytest

from spark_integration.jobs import programs
from spark_integration.jobs.errors import SparkRefused
from spark_integration.jobs.programs import Program
from tests.extras import requires

pytestmark = requires("java", "spark")
TOKEN = "a=b c"  # noqa: S105 (it is none)
AROUND = {**os.environ, "SAMSA_SPARK_TOKEN": TOKEN}


def server(home: Path, master: str = "local[2]") -> Program:
    return programs.connect_server(home, AROUND, port=15002, master=master, memory="1g")


def test_a_server_listens_on_loopback_only_and_asks_for_the_token(tmp_path: Path) -> None:
    made = server(tmp_path)

    assert made.settings["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert made.environment["SPARK_CONNECT_AUTHENTICATE_TOKEN"] == TOKEN
    assert TOKEN not in " ".join(made.command)
    assert TOKEN not in repr(made)


def test_secret_of_a_cluster_is_in_a_private_file(tmp_path: Path) -> None:
    made = server(tmp_path, "spark://127.0.0.1:7077")
    assert made.settings_file is not None
    made.settings_file.parent.mkdir(parents=True)
    made.settings_file.write_text("old", encoding="utf-8")
    made.settings_file.chmod(0o644)

    programs.prepare(made)

    said = made.settings_file.read_text(encoding="ascii")
    assert "spark.authenticate.secret a\\u003db\\u0020c\n" in said
    assert stat.S_IMODE(made.settings_file.stat().st_mode) == 0o600


def test_a_worker_has_the_secret_of_its_master_in_its_environment(tmp_path: Path) -> None:
    made = programs.worker(
        tmp_path, AROUND, host="127.0.0.1", at="spark://127.0.0.1", cores=2, memory="512m"
    )

    assert made.environment["_SPARK_AUTH_SECRET"] == TOKEN
    assert "SAMSA_SPARK_TOKEN" not in made.environment
    assert made.command[-1] == "spark://127.0.0.1:7077"
    assert TOKEN not in " ".join(made.command)


def test_pages_listen_on_loopback_unless_an_operator_opens_them(tmp_path: Path) -> None:
    host = "10.0.0.7"
    quiet = programs.master(tmp_path, AROUND, host=host, port=7077)
    shown = programs.master(tmp_path, AROUND, host=host, port=7077, page_host=host)

    assert quiet.environment["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert shown.environment["SPARK_LOCAL_IP"] == host
    assert quiet.command == shown.command


def test_nothing_is_started_without_a_secret(tmp_path: Path) -> None:
    with pytest.raises(SparkRefused, match="SAMSA_SPARK_TOKEN is not set"):
        programs.master(tmp_path, {}, host="127.0.0.1", port=7077)
    with pytest.raises(SparkRefused, match="SAMSA_SPARK_TOKEN is not set"):
        programs.connect_server(tmp_path, {}, port=1, master="local", memory="1g")


def test_a_server_runs_jobs_here_or_on_a_master_and_on_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(SparkRefused, match="give local"):
        server(tmp_path, "sc://localhost")
    with pytest.raises(SparkRefused, match="is not a master"):
        programs.worker(tmp_path, AROUND, host="127.0.0.1", at="local", cores=1, memory="1g")
