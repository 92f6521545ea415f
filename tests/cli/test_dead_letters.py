"""`./samsa connectors dead-letters` and `redrive` against REST of a web process and a broker."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest_django import Settings

from cli import dead_letters
from cli.connect_client import Connect, Refused
from gateway.kafka.connection import Connection
from tests.database import project_home, sqlite_databases
from tests.fakes.broker_thread import broker_beside

project_home()


from connectors import selectors  # noqa: E402
from gateway.access import changes as access_changes  # noqa: E402
from tests.builders import tokens  # noqa: E402
from tests.cli.test_connectors import CLUSTER, Asked, run  # noqa: E402
from tests.fakes.dead_letters import DEAD, bury_at, work  # noqa: E402
from tests.fakes.whole_door import whole_door  # noqa: E402

SINK = {
    "connector.class": "samsa.file.sink",
    "file": "out.txt",
    "topics": "orders",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": DEAD,
    "errors.deadletterqueue.context.headers.enable": "true",
}
SHOP = json.dumps({"name": "shop", "config": SINK})


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with broker_beside(tmp_path / "broker", topics={"orders": 3, DEAD: 1}) as broker:
        yield Connection(bootstrap=broker.bootstrap)


@pytest.fixture
def ask(
    tmp_path: Path, connection: Connection, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> Iterator[Asked]:
    monkeypatch.setattr(access_changes, "deliver", lambda: None)
    # A worker's turn is while the command waits.
    waiting = SimpleNamespace(sleep=lambda _: work(connection, CLUSTER))
    monkeypatch.setattr(dead_letters, "time", waiting)
    selectors.vault.cache_clear()
    settings.SAMSA_CONNECT_KEY_FILE, settings.SAMSA_HOME = tmp_path / "keys", tmp_path
    with (
        sqlite_databases(tmp_path),
        whole_door(tmp_path, connection.bootstrap, cluster=CLUSTER) as door,
    ):
        token = tokens.token(grants=tokens.EVERYTHING)
        yield Asked(SAMSA_CONNECT=f"http://127.0.0.1:{door.port}/connect", SAMSA_TOKEN=token)
    selectors.vault.cache_clear()


@pytest.mark.slow
def test_letters_are_looked_at_and_sent_again_by_words(ask: Asked, connection: Connection) -> None:
    ask("apply", "-f", "-", given=SHOP)
    assert "No letter matches" in ask("dead-letters", "shop")
    bury_at(connection, "shop", b"a", b"b")
    bury_at(connection, "other", b"theirs")

    shown = ask("dead-letters", "shop", "--stage", "task_put")
    assert "0/1     orders 2/1  TASK_PUT  IOException  no" in shown
    listed = json.loads(ask("dead-letters", "shop", "-O", "json"))
    assert [one["connector"] for one in listed["letters"]] == ["other", "shop", "shop"]

    causes = json.loads(ask("dead-letters", "shop", "--causes", "-O", "json"))["causes"]
    assert [(one["letters"], one["text"]) for one in causes] == [(3, "no")]
    assert f"{causes[0]['cause']}        3  TASK_PUT" in ask("dead-letters", "shop", "--causes")
    assert "2 letters" in ask("redrive", "shop", "--cause", causes[0]["cause"], "--dry-run")

    planned = ask("redrive", "shop", "--dry-run")
    assert "2 letters of topic dead would be sent again\n" in planned
    assert "to topic connect-shop.retry, which is created first: 2\n" in planned
    assert "not sent: 1, it belongs to another connector\n" in planned
    assert ask("redrives", "shop") == "No runs.\n"

    one = ("--letter", "0/0", "--offsets", "0:0-2", "--exception", "IOException")
    done = json.loads(ask("redrive", "shop", *one, "--yes", "-O", "json"))
    assert (done["state"], done["sent"]) == ("DONE", 1)

    assert "retry  DONE   1 of 1" in ask("redrives", "shop")
    assert "No letter" in ask("dead-letters", "shop", "--stage", "none")


@pytest.mark.slow
def test_a_run_is_stopped_resumed_and_waited_for(ask: Asked, connection: Connection) -> None:
    ask("apply", "-f", "-", given=SHOP)
    bury_at(connection, "shop", b"a")

    started = json.loads(ask("redrive", "shop", "--to", "origin", "--no-wait", "-y", "-O", "json"))
    number = str(started["run"])
    assert "STOPPED, 0 of 1 sent" in ask("redrives", "shop", "--stop", number)
    assert "RUNNING, 0 of 1 sent" in ask("redrives", "shop", "--resume", number)
    work(connection, CLUSTER)

    assert json.loads(ask("redrives", "shop", "-O", "json"))[0]["state"] == "DONE"
    assert "has no run 99" in ask.refused("redrives", "shop", "--stop", "99")


def test_a_kafka_connect_that_is_not_ours_is_told_from_a_missing_connector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = ["HTTP 404 Not Found", "Connector shop not found"]

    def answer(*_: object, **__: object) -> None:
        raise Refused(told.pop(0), status=404)

    monkeypatch.setattr(Connect, "answer", answer)

    theirs, missing = run("dead-letters", "shop"), run("dead-letters", "shop")

    assert "only Samsa's Connect API lists them" in theirs.stderr
    assert "Connector shop not found" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("redrive", "a", "--offsets", "5"), "'5' is not a range"),
        (("redrive", "a", "--letter", "x"), "'x' is not a dead letter"),
        (("redrive", "a", "--to", "elsewhere"), "is not one of"),
        (("redrives", "a", "--stop", "1", "--resume", "1"), "exclude each other"),
    ],
)
def test_wrong_words_are_told_before_anybody_is_asked(
    arguments: tuple[str, ...], said: str
) -> None:
    result = run(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
