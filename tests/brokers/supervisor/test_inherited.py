"""Each kind of process inherits what it reads, and no password that it does not need."""

import os
from pathlib import Path

import pytest

from brokers.supervisor import leftovers
from brokers.supervisor.components import Kind
from brokers.supervisor.inherited import ROWS, inherited
from tests.brokers.supervisor.houses import running, within

SECRETS = {
    "DATABASE_URL": "postgres://samsa:sekret@db.test/samsa",
    "PGPASSWORD": "sekret",
    "REDIS_URL": "redis://:sekret@cache.test/0",
    "AWS_SECRET_ACCESS_KEY": "sekret",
    "SAMSA_SECRET_KEY": "sekret",
}
ORDINARY = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "TZ": "UTC"}


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Kind.AGENT, {"DATABASE_URL", "PGPASSWORD"}),
        (Kind.BROKER, set()),
        (Kind.WEB, {"DATABASE_URL", "PGPASSWORD", "REDIS_URL"}),
        (Kind.GATEWAY, {"DATABASE_URL", "PGPASSWORD", "REDIS_URL"}),
        (Kind.COLLECTOR, {"DATABASE_URL", "PGPASSWORD"}),
        (Kind.BEAT, {"DATABASE_URL", "PGPASSWORD", "REDIS_URL"}),
        # Its code is foreign: no keys of brokers, and none of sessions.
        (Kind.WORKER, {"DATABASE_URL", "PGPASSWORD", "REDIS_URL"}),
    ],
)
def test_a_kind_gets_the_passwords_that_it_needs(kind: Kind, told: set[str]) -> None:
    assert set(inherited(kind, SECRETS)) == told


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_gets_what_a_program_runs_with(kind: Kind) -> None:
    assert inherited(kind, ORDINARY) == ORDINARY


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("SAMSA_DEFAULTS", {Kind.BROKER}),
        ("SAMSA_ALLOWED_HOSTS", {Kind.WEB, Kind.GATEWAY}),
        ("SAMSA_TRUSTED_PROXIES", {Kind.WEB, Kind.GATEWAY}),
        ("SAMSA_HTTPS", {Kind.WEB, Kind.GATEWAY}),
        ("REDIS_URL", {Kind.WEB, Kind.GATEWAY, Kind.BEAT, Kind.WORKER}),
        ("SAMSA_CONNECT_SECRET_DIRS", {Kind.WEB, Kind.GATEWAY, Kind.WORKER}),
        ("SPARK_CONF_DIR", {Kind.WORKER}),
        ("JDK_JAVA_OPTIONS", {Kind.WORKER}),
        ("SAMSA_COLLECTOR", {Kind.WEB, Kind.COLLECTOR}),
        ("KRB5CCNAME", set(Kind) - {Kind.BROKER, Kind.VALKEY}),
        ("OPENSSL_CONF", set(Kind)),
        ("SAMSA_BOOTSTRAP", set()),
        ("DJANGO_SETTINGS_MODULE", set()),
        # A pattern is a whole name or a beginning, never a part.
        ("MY_PATH", set()),
        ("PATHS", set()),
    ],
)
def test_a_variable_goes_to_those_that_read_it(name: str, kinds: set[Kind]) -> None:
    assert {kind for kind in Kind if inherited(kind, {name: "x"})} == kinds


def test_a_worker_gets_variables_that_configs_may_refer_to_by_name_only() -> None:
    told = {"SAMSA_CONNECT_ENV_NAMES": "DB_PASSWORD, AWS_*", "DB_PASSWORD": "x", "AWS_KEY": "y"}

    assert set(inherited(Kind.WORKER, told)) == {"SAMSA_CONNECT_ENV_NAMES", "DB_PASSWORD"}
    assert "DB_PASSWORD" not in inherited(Kind.WEB, told)


def test_every_row_has_a_reason() -> None:
    assert all(row.reason and row.kinds for row in ROWS)


@pytest.mark.slow
def test_no_broker_has_the_password_of_the_database_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)

    async def scenario() -> None:
        # The broker starts a child of its own, which inherits what the broker has.
        async with running(tmp_path, {"broker-1": "offspring"}, web_port=0) as house:
            await house.audience.hears("all is healthy")
            trusted = {
                (await house.component(name))["pid"] for name in ("agent", "web", "collector")
            }
            family = set(leftovers.marked(tmp_path)) - trusted

            has_password = {pid for pid in leftovers.marked(tmp_path) if "sekret" in environ(pid)}

            assert len(family) == 2
            assert has_password == trusted

    within(scenario)


def environ(pid: int) -> str:
    return os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes())
