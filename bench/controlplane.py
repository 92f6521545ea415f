"""The control plane under load: four processes that write without a pause, and a fence among them.

On the SQLite file of a new home and, with `--postgres URL`, on that database, which is written to.
There a broker is killed as well while another session holds a topic's row.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psycopg

from bench.broker_targets import ROOT
from bench.homes import BenchHome, running_home
from bench.measure import Cell, Table

WRITERS: Final = 4
FENCES: Final = 50
FENCE_MS: Final = 100.0
SHARES: Final = 2.0
KILLED_MS: Final = 300.0
KILLS: Final = 3
# Between the first write of a process, which makes its connection, and what counts.
WARM_SECONDS: Final = 0.5
# A fence and its return take two pauses of a twentieth of a second, or less.
SECONDS_PER_FENCE: Final = 0.12
PATIENCE_SECONDS: Final = 60.0
HELD: Final = "bench-held"
COLUMNS: Final = ("database", "writes/s", "shares", "slowest write ms", "fence p50 ms", "worst ms")


def run(postgres: str | None = None) -> Iterator[Table]:
    with TemporaryDirectory(prefix="samsa-bench-") as folder:
        yield writers_table("SQLite", {"SAMSA_HOME": f"{folder}/home"})
    if postgres is not None:
        with TemporaryDirectory(prefix="samsa-bench-") as folder:
            place = {"SAMSA_HOME": f"{folder}/home", "DATABASE_URL": postgres}
            yield writers_table("PostgreSQL", place)
        yield killed_table(postgres)


def writers_table(name: str, place: Mapping[str, str], *, fences: int = FENCES) -> Table:
    """One row: what four writers and the fence got."""
    Path(place["SAMSA_HOME"]).mkdir(parents=True, exist_ok=True)
    known = _answer(_told(_child(place), {"role": "prepare"}))
    fencer, *writers = [_child(place) for _ in range(1 + WRITERS)]
    begin = time.time() + WARM_SECONDS
    end = begin + fences * SECONDS_PER_FENCE + WARM_SECONDS
    job = {**known, "begin": begin, "end": end, "count": fences}
    for number, writer in enumerate(writers):
        _told(writer, {**job, "role": "write", "number": number})
    waited = _answer(_told(fencer, {**job, "role": "fence"}))["ms"]
    answers = [_answer(writer) for writer in writers]
    shares = [answer["written"] for answer in answers]
    slowest = max(answer["slowest_ms"] for answer in answers)
    row: tuple[Cell, ...] = (
        name,
        sum(shares) / (end - begin),
        " ".join(map(str, shares)),
        slowest,
        waited[len(waited) // 2],
        waited[-1],
    )
    is_met = waited[-1] <= FENCE_MS and max(shares) <= SHARES * max(1, min(shares))
    verdict = "met" if is_met else "NOT MET"
    return Table(
        title=f"{WRITERS} processes write without a pause: {fences} fences among them",
        columns=COLUMNS,
        rows=[row],
        notes=(f"targets: worst fence {FENCE_MS:g} ms, shares within {SHARES:g}x: {verdict}",),
    )


def killed_table(url: str) -> Table:
    """How long a killed broker stays in the cluster while a delete waits for a topic's row."""
    with _environment(DATABASE_URL=url), running_home(brokers=2) as home:
        taken = [_killed_ms(home, url, f"{HELD}-{number}") for number in range(KILLS)]
    return Table(
        title="A broker is killed while another session holds a topic's row",
        columns=("", "ms until it is fenced"),
        rows=[(f"kill {number}", each) for number, each in enumerate(taken, 1)],
        notes=(f"target {KILLED_MS:g} ms: {'met' if max(taken) <= KILLED_MS else 'NOT MET'}",),
    )


def _killed_ms(home: BenchHome, url: str, topic: str) -> float:
    _samsa(home.folder, "topics", "create", topic)
    broker = next(each for each in home.status()["brokers"] if each["id"] == 2)
    deleting = threading.Thread(
        target=_samsa, args=(home.folder, "topics", "delete", "--yes", topic)
    )
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as looker:
        holder.execute("SELECT 1 FROM controlplane_topic WHERE name = %s FOR UPDATE", [topic])
        deleting.start()
        _until(looker, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")
        began = time.perf_counter()
        os.kill(broker["pid"], signal.SIGKILL)
        _until(looker, "SELECT is_fenced FROM controlplane_broker WHERE broker_id = 2")
        taken = 1000 * (time.perf_counter() - began)
        holder.rollback()
        deleting.join()
        _until(looker, "SELECT NOT is_fenced FROM controlplane_broker WHERE broker_id = 2")
    return taken


def _until(database: psycopg.Connection[Any], question: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        row = database.execute(question).fetchone()
        if row is not None and row[0]:
            return
        time.sleep(0.001)
    raise TimeoutError(f"not within {PATIENCE_SECONDS:g} s: {question}")


@contextmanager
def _environment(**more: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _samsa(home: Path, *words: str) -> None:
    command = [str(ROOT / "samsa"), *words, "--home", str(home)]
    subprocess.run(command, check=False, capture_output=True, timeout=PATIENCE_SECONDS)


def _child(place: Mapping[str, str]) -> "subprocess.Popen[str]":
    """Return a process that has imported all that it needs."""
    environment = {name: text for name, text in os.environ.items() if name != "DATABASE_URL"}
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.controlplane_children"],
        cwd=ROOT,
        env={**environment, **place},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None, "its output is a pipe"
    assert child.stdout.readline() == "ready\n", child.communicate()[1]
    return child


def _told(child: "subprocess.Popen[str]", job: Mapping[str, Any]) -> "subprocess.Popen[str]":
    assert child.stdin is not None, "its input is a pipe"
    child.stdin.write(json.dumps(dict(job)) + "\n")
    child.stdin.flush()
    return child


def _answer(child: "subprocess.Popen[str]") -> dict[str, Any]:
    said, complaints = child.communicate(timeout=PATIENCE_SECONDS)
    assert child.returncode == 0, complaints
    answer: dict[str, Any] = json.loads(said)
    return answer
