"""The containers of docker-compose.yml: what they show, and their commands as plain processes."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bench.ports import claim_port
from cli.environment import ROOT
from tests.extras import requires
from tests.suite.services import shared_postgres

FILE: Final = ROOT / "docker-compose.yml"
COMPOSE: Final[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]
# Those of the image, which anchors of the file have merged already.
OURS: Final = ("brokers", "web", "gateway", "collector", "connect-beat", "connect-worker")
SPARK: Final = ("spark-master", "spark-worker")
HEALTHY_SECONDS: Final = 120
STOP_SECONDS: Final = 40
# A health command takes half a second of a core, so that a pause between two is no waste.
PAUSE_SECONDS: Final = 0.3


def test_nothing_is_published_beyond_this_machine_and_no_broker_at_all() -> None:
    published = {name: service.get("ports", []) for name, service in SERVICES.items()}

    assert {name for name, ports in published.items() if ports} == {"web", "gateway"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_each_container_says_whether_it_is_well_and_holds_no_secret() -> None:
    for name, service in SERVICES.items():
        assert service["healthcheck"]["test"], name
        for variable, value in service.get("environment", {}).items():
            assert "://" not in str(value), (name, variable)
            if "PASSWORD" in variable or "URL" in variable:
                assert variable.endswith("_FILE"), (name, variable)
                assert str(value).startswith("/run/secrets/"), (name, variable)
        used = service.get("secrets", [])
        assert set(used) <= set(COMPOSE["secrets"]), name


def test_containers_of_ours_are_one_image_without_root_that_writes_to_volumes_only() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    assert "\nUSER samsa\n" in dockerfile
    assert "--require-hashes" in dockerfile
    for name in OURS:
        service = SERVICES[name]
        assert (service["image"], service["read_only"]) == ("samsa", True), name
        assert service["cap_drop"] == ["ALL"], name


def test_containers_of_spark_ask_for_a_secret_and_run_only_where_they_are_asked_for() -> None:
    for name in SPARK:
        service = SERVICES[name]
        assert service["profiles"] == ["spark"], name
        assert (service["image"], service["build"]["target"]) == ("samsa-spark", "samsa-spark")
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
        assert service["secrets"] == ["spark_token"], name
        assert "-Dspark.authenticate=true" in service["environment"]["SPARK_DAEMON_JAVA_OPTS"]


def test_what_starts_a_container_gives_spark_its_secret_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret", encoding="utf-8")
    show = "import os; print(os.environ['SAMSA_SPARK_TOKEN'], os.environ['_SPARK_AUTH_SECRET'])"

    told = subprocess.run(
        [ROOT / "docker" / "entry", sys.executable, "-c", show],
        env={"PATH": os.environ["PATH"], "SAMSA_SPARK_TOKEN_FILE": str(tmp_path / "token")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout == "s3cret s3cret\n"


def test_an_image_holds_every_folder_that_its_processes_import() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()

    for folder in ("brokers", "cli", "connectors", "console", "gateway"):
        assert f"COPY {folder} {folder}\n" in dockerfile
        assert f"!{folder}" in ignored
    assert "!manage.py" in ignored


def test_no_secret_gets_into_an_image_or_a_commit() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    uncommitted = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()

    # All but what is named is ignored, and of the folder with the secrets one file is named.
    assert ignored[0] == "*"
    assert [line for line in ignored if "docker" in line] == ["!docker/entry"]
    assert "COPY docker/entry docker/\n" in dockerfile
    assert "docker/secrets/" in uncommitted
    for secret in COMPOSE["secrets"].values():
        assert secret["file"].startswith("./docker/secrets/")


@requires("docker-compose")
def test_docker_compose_takes_the_file() -> None:
    told = subprocess.run(
        ["docker-compose", "-f", str(FILE), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (told.returncode, told.stderr) == (0, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """This machine in the place of the containers' network, volumes and secrets."""

    folder: Path
    ports: dict[str, str]

    def here(self, text: str) -> str:
        """Return a text of the file as it is on this machine."""
        places = {
            "/var/lib/samsa": str(self.folder / "home"),
            "/run/samsa": str(self.folder / "run"),
            "/run/secrets": str(self.folder / "secrets"),
            "0.0.0.0": "127.0.0.1",  # noqa: S104 - nothing of a test binds to it
            "brokers:9092": "127.0.0.1:9092",
            "redis-server ": "redis-server --port 6379 ",
            "redis-cli ": "redis-cli -p 6379 ",
            "$$": "$",
        }
        for theirs, ours in places.items():
            text = text.replace(theirs, ours)
        # At once: a port of this machine may contain another one of the file.
        return re.sub("|".join(self.ports), lambda found: self.ports[found[0]], text)

    def command(self, words: list[str]) -> list[str]:
        told = ["127.0.0.1" if word == "brokers" else self.here(word) for word in words]
        return [sys.executable if word == "python" else word for word in told]

    def environment(self, service: dict[str, Any]) -> dict[str, str]:
        told = {
            name: self.here(str(value)) for name, value in service.get("environment", {}).items()
        }
        return {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **told}

    def start(self, name: str) -> subprocess.Popen[bytes]:
        service = SERVICES[name]
        entry = [str(ROOT / "docker" / "entry")] if name in OURS else []
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*entry, *self.command(service["command"])],
                cwd=ROOT,
                env=self.environment(service),
                stdout=log,
                stderr=log,
            )

    def is_healthy(self, name: str) -> bool:
        service = SERVICES[name]
        kind, *words = service["healthcheck"]["test"]
        command = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        told = subprocess.run(
            self.command(command),
            cwd=ROOT,
            env=self.environment(service),
            capture_output=True,
            check=False,
            timeout=30,
        )
        return told.returncode == 0

    def wait_healthy(self, name: str, process: subprocess.Popen[bytes]) -> None:
        log = self.folder / f"{name}.log"
        end = time.monotonic() + HEALTHY_SECONDS
        while not self.is_healthy(name):
            # One that has ended is waited for no longer; otherwise this is the pause.
            with suppress(subprocess.TimeoutExpired):
                process.wait(PAUSE_SECONDS)
            said = log.read_text(encoding="utf-8", errors="replace")[-2_000:]
            assert process.returncode is None, f"{name} has ended: {said}"
            assert time.monotonic() < end, f"{name} is not healthy: {said}"

    def run_in_brokers(self, *words: str) -> str:
        """Return what a command prints that somebody runs in the brokers' container."""
        told = subprocess.run(
            [str(ROOT / "docker" / "entry"), sys.executable, "-P", "-m", "cli", *words],
            cwd=ROOT,
            env=self.environment(SERVICES["brokers"]),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert told.returncode == 0, told.stderr
        return told.stdout.strip()


@contextmanager
def running(machine: Machine, name: str) -> Iterator[None]:
    process = machine.start(name)
    try:
        machine.wait_healthy(name, process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def machine() -> Iterator[Machine]:
    # A socket's path is short, which folders of tests are not.
    folder = Path(tempfile.mkdtemp(prefix="samsa-"))
    try:
        (folder / "secrets").mkdir()
        (folder / "run").mkdir(mode=0o700)
        names = ("9092", "8000", "8082", "8083", "6379")
        made = Machine(folder=folder, ports={name: str(claim_port()) for name in names})
        secrets = {
            "redis_password": "of-redis",
            "redis_url": f"redis://:of-redis@127.0.0.1:{made.ports['6379']}/0",
            "database_url": shared_postgres().make_database(folder.name),
        }
        for name, text in secrets.items():
            (folder / "secrets" / name).write_text(text, encoding="utf-8")
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def asked(port: str, method: str, path: str, token: str, body: object = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
    try:
        kind = "application/json" if "/v3/" in path else "application/vnd.kafka.json.v2+json"
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text)
    finally:
        connection.close()


@pytest.mark.slow
@requires("postgresql", "redis")
def test_every_command_of_the_file_serves_by_itself(machine: Machine) -> None:
    with ExitStack() as stack:
        for name in ("redis", *OURS):
            stack.enter_context(running(machine, name))
        token = machine.run_in_brokers("tokens", "create", "app", "--admin")
        web, gateway = machine.ports["8000"], machine.ports["8082"]

        (cluster,) = asked(web, "GET", "/v3/clusters", token)["data"]
        topics = f"/v3/clusters/{cluster['cluster_id']}/topics"
        asked(gateway, "POST", topics, token, {"topic_name": "orders"})
        asked(gateway, "POST", "/topics/orders", token, {"records": [{"value": "hello"}]})
        read = asked(gateway, "GET", "/v1/topics/orders/records?wait=5&format=json", token)

    assert [record["value"] for record in read["records"]] == ["hello"]
