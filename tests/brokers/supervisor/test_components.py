"""Which processes a home has, and what each is told."""

import shlex
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from brokers.supervisor import valkey
from brokers.supervisor.components import (
    STOP_ORDER,
    Component,
    Doors,
    Kind,
    Listener,
    connect_table,
    spark_table,
    table,
)
from brokers.supervisor.home import Home
from brokers.supervisor.options import Options


def rows(folder: Path, doors: Doors, *, workers: int = 1) -> dict[str, Component]:
    home = Home(folder)
    home.prepare()
    options = Options(home=folder, brokers=1, gateway_workers=workers)
    return {row.name: row for row in table(options, home, doors)}


REST = Listener(descriptor=7, port=8082)
WEB = Listener(descriptor=5, port=8000)


def test_a_home_without_doors_has_neither_console_nor_gateway(tmp_path: Path) -> None:
    assert list(rows(tmp_path, Doors())) == ["agent", "broker-1"]


def test_the_collector_alone_is_told_the_topic_of_the_metrics_where_there_is_one(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    home.prepare()
    options = Options(home=tmp_path, brokers=1, metrics_topic="samsa-metrics")

    told = {row.name: row.environment for row in table(options, home, Doors(web=WEB))}

    assert told["collector"]["SAMSA_METRICS_TOPIC"] == "samsa-metrics"
    assert [name for name, given in told.items() if "SAMSA_METRICS_TOPIC" in given] == ["collector"]
    assert "SAMSA_METRICS_TOPIC" not in rows(tmp_path, Doors(web=WEB))["collector"].environment


def test_connectors_need_a_beat_and_workers_where_messages_can_go(tmp_path: Path) -> None:
    options = Options(home=tmp_path, workers=2)
    home = Home(tmp_path)
    home.prepare()

    rows = connect_table(options, home, Doors(valkey=Path("/valkey")))

    assert [row.name for row in rows] == ["connect-beat", "connect-worker-1", "connect-worker-2"]
    assert shlex.join(rows[2].command).endswith("manage.py connect_worker connect-worker-2")
    assert {"REDIS_URL", "SAMSA_HOME"} <= set(rows[1].environment)
    assert {row.environment["SAMSA_DOOR"] for row in rows} == {"connect"}
    assert not [name for name in rows[1].environment if "SECRET" in name]
    assert connect_table(options, home, Doors()) == []
    assert connect_table(replace(options, workers=0), home, Doors(has_foreign_store=True)) == []


def test_the_worker_of_spark_is_one_where_connectors_can_run_at_all(tmp_path: Path) -> None:
    options = Options(home=tmp_path, workers=2)
    home = Home(tmp_path)
    home.prepare()

    (row,) = spark_table(options, home, Doors(valkey=Path("/valkey")))

    assert shlex.join(row.command).endswith("connect_worker connect-spark --pool spark")
    assert row.kind is Kind.WORKER
    assert spark_table(replace(options, workers=0), home, Doors(valkey=Path("/valkey"))) == []


def test_gateway_workers_share_one_listening_socket_and_have_one_each(tmp_path: Path) -> None:
    found = rows(tmp_path, Doors(rest=REST), workers=2)

    workers = [row for row in found.values() if row.kind is Kind.GATEWAY]
    assert [row.name for row in workers] == ["gateway-1", "gateway-2"]
    assert {row.inherited for row in workers} == {(7,)}
    assert [row.socket for row in workers] == [
        tmp_path / "run" / "gateway-1.sock",
        tmp_path / "run" / "gateway-2.sock",
    ]
    assert "--door rest --worker gateway-2" in shlex.join(workers[1].command)


def test_only_those_who_share_something_are_told_where(tmp_path: Path) -> None:
    deep = tmp_path / "a b"
    doors = Doors(web=WEB, rest=REST, valkey=Path("valkey-server"))
    found = rows(deep, doors)

    told = {name for name, row in found.items() if "REDIS_URL" in row.environment}
    assert told == {"web", "gateway-1"}
    # A deep home has its sockets in another folder.
    socket = quote(str(Home(deep).socket_folder() / "valkey.sock"))
    assert found["web"].environment["REDIS_URL"].endswith(socket)
    assert str(deep / "data" / "valkey") in found["valkey"].command
    assert (deep / "data" / "valkey").stat().st_mode & 0o077 == 0


def test_every_kind_has_its_place_when_a_home_stops() -> None:
    placed = [kind for stage in STOP_ORDER for kind in stage]

    assert sorted(kind.value for kind in placed) == sorted(kind.value for kind in Kind)


def test_those_who_ask_stop_before_those_who_are_asked() -> None:
    stage = {kind: place for place, kinds in enumerate(STOP_ORDER) for kind in kinds}

    assert stage[Kind.GATEWAY] < stage[Kind.BROKER] < stage[Kind.AGENT]
    assert stage[Kind.GATEWAY] < stage[Kind.VALKEY]


def test_the_shared_server_is_found_without_importing_its_package() -> None:
    program = valkey.program()

    assert program is not None
    assert program.is_file()


def test_without_its_package_there_is_no_shared_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey, "PACKAGE", "no-such-package")

    assert valkey.program() is None
