"""Connectors and tasks as rows, every value defaulted."""

import time
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


def retrying(reason: str = "cannot connect", *, tries: int = 9, for_s: int = 300) -> dict[str, Any]:
    """Return figures of a task that has failed for a while, and tries again in a moment."""
    now_ms = 1000 * int(time.time())
    told = {"since_ms": now_ms - 1000 * for_s, "next_ms": now_ms + 3000}
    return {"retrying": {"tries": tries, "reason": reason, **told}}


def losing(
    *, read: int = 100, lost: int = 100, dead: int = 100, era: str = "1/0", advice: str = ""
) -> dict[str, Any]:
    """Return figures of a task that has lost records in the last minute."""
    now_ms = 1000 * int(time.time())
    told = {"since_ms": now_ms - 60_000, "last_ms": now_ms - 1000, "lost": lost, "dead": dead}
    causes = [["values are no <b>JSON</b>", advice, lost - 1], ["other errors", "", 1]]
    losses = {"era": era, "minutes": [[now_ms // 60_000, read, lost]], "causes": causes, **told}
    return {"records_lost": lost, "dead_letters": dead, "losses": losses}


def line(of: models.Connector, text: str, **values: Any) -> models.LogLine:
    row: dict[str, Any] = {"task": 0, "level": "INFO"}
    return models.LogLine.objects.create(connector=of, text=text, **{**row, **values})


def offset(of: models.Connector, place: dict[str, Any], offset: dict[str, Any]) -> None:
    models.SourceOffset.objects.create(
        connector=of, digest=str(sorted(place.items()))[:64], place=place, offset=offset
    )


def worker(cluster: str, name: str = "worker-1") -> models.Worker:
    return models.Worker.objects.create(cluster=cluster, name=name, host="here", process_id=1)


def spark_connector(cluster: str, name: str, **values: Any) -> models.Connector:
    """Return a connector whose tasks run on Spark; `config` is what it has beside its name."""
    config = {"topics": "orders", "table.path": "lake/orders", **values.pop("config", {})}
    row = {"plugin": "samsa.spark.sink", "kind": "sink", "pool": "spark"}
    return connector(cluster, name, **{**row, **values}, config={**config, "name": name})


def spark_report(
    cluster: str, *, name: str = "connect-spark.1.here", host: str = "here", **told: Any
) -> models.WorkerReport:
    """Return what a worker of Spark that lives has told."""
    models.Worker.objects.create(cluster=cluster, name=name, host=host, pool="spark", process_id=1)
    now_ms = 1000 * int(time.time())
    engine = {
        "version": "4.3.0",
        "java_version": 17,
        "java_origin": "PATH",
        "process": 4711,
        "heap_bytes": 1 << 30,
        "cores": 2,
        "ui_url": "",
    }
    given = told.pop("engine", {})
    known = {
        "is_installed": True,
        "stage": "running",
        "target": "local[2]",
        "since_ms": now_ms - 60_000,
        "engine": None if given is None else {**engine, **given},
        "memory_bytes": 640 << 20,
        "streams": [],
        "failure": "",
        "failed_ms": now_ms - 90_000 if told.get("failure") else 0,
        "wants_ui": False,
        "logs": "logs",
    }
    return models.WorkerReport.objects.create(
        cluster=cluster, name=name, host=host, pool="spark", told={**known, **told}
    )


def spark_batch(*, ended_ms: int, newest_ms: int | None, **values: Any) -> dict[str, Any]:
    """Return the last batch of a job as figures of its task have it."""
    took = {"read_s": 0.5, "write_s": 1.5, "waited_s": 6.0}
    return {
        "records": 100,
        "rows": 100,
        **took,
        "newest_ms": newest_ms,
        "ended_ms": ended_ms,
        **values,
    }
