"""Connectors and tasks as rows, every value defaulted."""

from typing import Any

from connectors import models

CONFIG = {"connector.class": "samsa.datagen", "kafka.topic": "orders", "quickstart": "orders"}


def connector(cluster: str, name: str, **values: Any) -> models.Connector:
    row: dict[str, Any] = {
        "plugin": "samsa.datagen",
        "version": "1.0",
        "kind": "source",
        "config": {**CONFIG, "name": name},
        "target": "STARTED",
        "state": "RUNNING",
        "topics": ["orders"],
    }
    return models.Connector.objects.create(cluster=cluster, name=name, **{**row, **values})


def task(of: models.Connector, number: int = 0, **values: Any) -> models.Task:
    row: dict[str, Any] = {"generation": 1, "state": "RUNNING", "worker": "worker-1"}
    return models.Task.objects.create(connector=of, number=number, **{**row, **values})


def line(of: models.Connector, text: str, **values: Any) -> models.LogLine:
    row: dict[str, Any] = {"task": 0, "level": "INFO"}
    return models.LogLine.objects.create(connector=of, text=text, **{**row, **values})


def offset(of: models.Connector, place: dict[str, Any], offset: dict[str, Any]) -> None:
    models.SourceOffset.objects.create(
        connector=of, digest=str(sorted(place.items()))[:64], place=place, offset=offset
    )


def worker(cluster: str, name: str = "worker-1") -> models.Worker:
    return models.Worker.objects.create(cluster=cluster, name=name, host="here", process_id=1)
