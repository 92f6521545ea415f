"""The worker over REST: version, health, and levels of loggers."""

import logging
from collections.abc import Iterator

import pytest

from connectors.rest.worker import AUDIT, ROOT, _loggers
from tests.gateway.rest.asking import CLUSTER, Api

NAME = "connectors.made_up"


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger(NAME)
    former = {name: logger.level for name, logger in _loggers()}
    yield found
    for name, level in former.items():
        if name != ROOT:
            logging.getLogger(name).setLevel(level)


def test_the_root_names_the_interface_and_the_cluster(connect: Api) -> None:
    assert connect.get("/") == {
        "version": "4.3.0",
        "commit": "samsa",
        "kafka_cluster_id": CLUSTER,
    }
    assert connect.get("/health")["status"] == "healthy"


def test_levels_are_shown_and_set_for_a_logger_and_those_below(
    connect: Api, logger: logging.Logger
) -> None:
    assert connect.get("/admin/loggers/root")["last_modified"] is None

    answer = connect("PUT", f"/admin/loggers/{NAME}", {"level": "debug"})

    assert (answer.status_code, answer.json()) == (200, [NAME])
    assert logger.level == logging.DEBUG
    shown = connect.get("/admin/loggers")[NAME]
    assert shown["level"] == "DEBUG"
    assert shown["last_modified"] > 0


def test_the_root_is_above_the_loggers_of_samsa_alone(connect: Api, logger: logging.Logger) -> None:
    levels = {name: logging.getLogger(name).level for name in ("", "uvicorn.error", AUDIT)}

    changed = connect("PUT", "/admin/loggers/root", {"level": "TRACE"}).json()

    assert {"root", "connectors", "gateway", NAME} <= set(changed)
    assert (logger.level, connect.get("/admin/loggers/root")["level"]) == (5, "TRACE")
    assert {name: logging.getLogger(name).level for name in levels} == levels
    assert set(connect.get("/admin/loggers")) == set(changed)


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        (NAME, {"level": "nope"}, 404, "invalid log level 'nope'."),
        (NAME, {}, 400, "Desired 'level' parameter was not specified in request."),
        ("nobody.there", {"level": "INFO"}, 404, "Logger nobody.there not found."),
        ("uvicorn.error", {"level": "DEBUG"}, 404, "Logger uvicorn.error not found."),
        ("gateway.access.audit", {"level": "OFF"}, 404, "Logger gateway.access.audit not found."),
        (f"{NAME}?scope=cluster", {"level": "INFO"}, 400, "scope=cluster is not served"),
    ],
)
def test_levels_that_cannot_be_set_are_refused(
    connect: Api, path: str, body: dict[str, str], status: int, message: str
) -> None:
    answer = connect("PUT", f"/admin/loggers/{path}", body)

    assert answer.status_code == status
    assert answer.json()["message"].startswith(message)
