"""Fills a small disk under load and lives on it: `python -m tests.crash.full_disk FOLDER [KIND…]`.

Runs in a mount namespace of its own, mounts 300 MB at FOLDER, kills a process of each KIND while
the disk is full, and ends with one line of JSON. Any promise that is broken is a traceback.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.ports import claim_port
from brokers.disk_room import MIB, RESERVE_FILE, Room, room_at
from brokers.supervisor.options import Options
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.values import NewTopic
from tests.cluster import ROOT, Cluster, start, stop
from tests.crash.traffic import PARTITIONS, Traffic, judge
from tests.interop.clients.confluent import ConfluentClient
from tests.raw_groups import Coordinated, patiently

DISK_BYTES: Final = 300_000_000
# What clients may write until they are refused.
LEFT_BYTES: Final = 24 * MIB
# Records in flight, and the pause between two checks of them.
IN_FLIGHT: Final = 2_000
PAUSE_SECONDS: Final = 0.02
PATIENCE_SECONDS: Final = 60
SERVED_SECONDS: Final = 10
KEPT, HOG, EMPTY, GROUP = "kept", "hog", "empty", "readers"


@dataclass(slots=True, kw_only=True)
class Load:
    """A producer that continues after any error, in a thread of its own."""

    traffic: Traffic
    over: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def begin(self) -> None:
        self.thread = threading.Thread(target=self._go_on, daemon=True)
        self.thread.start()

    def end(self) -> None:
        self.over.set()
        assert self.thread is not None
        self.thread.join(PATIENCE_SECONDS)

    def _go_on(self) -> None:
        while not self.over.wait(PAUSE_SECONDS):
            self.traffic.write(min(100, max(0, IN_FLIGHT - self.traffic.in_flight)))
            self.traffic.poll()

    @property
    def acknowledged(self) -> int:
        return len(self.traffic.acknowledged)


class Stage:
    """The home on its small disk, and what else is on it."""

    def __init__(self, folder: Path, kinds: list[str]) -> None:
        self.folder = folder
        self.kinds = kinds
        has_all = "web" in kinds
        self.options = Options(
            home=folder / "home",
            brokers=1,
            port=claim_port(),
            web_port=0 if has_all else None,
            rest_port=0 if has_all else None,
        )
        self.cluster = self.up()
        self.connection = Connection(bootstrap=self.cluster.bootstrap)
        self.report: dict[str, Any] = {}

    def up(self) -> Cluster:
        return start(self.options, {})

    def room(self) -> Room:
        return room_at(self.folder)

    def fill(self, name: str, *, leaves: int) -> None:
        """Let other data take the disk, up to so many bytes."""
        with (self.folder / name).open("wb", buffering=0) as file:
            if leaves:
                os.posix_fallocate(file.fileno(), 0, self.room().free_bytes - leaves)
                return
            for size in (MIB, 4096):
                block = bytes(size)
                with suppress(OSError):
                    while True:
                        file.write(block)

    def bytes_of(self, topic: str) -> int:
        """Return the size of a topic's files, deleted ones included."""
        size = 0
        for file in (self.options.home / "data" / "broker-1").glob(f"{topic}-*/*.log*"):
            with suppress(FileNotFoundError):
                size += file.stat().st_size
        return size

    def samsa(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [ROOT / "samsa", *arguments, "--home", self.options.home],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.report[what] = round(time.monotonic() - began, 2)

    def until(self, what: str, fact: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        with self.timed(what):
            self.cluster.wait(fact, what, seconds=seconds)


def run(folder: Path, kinds: list[str]) -> dict[str, Any]:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], check=True
    )
    stage = Stage(folder, kinds)
    admin = Admin(stage.connection)
    admin.create([NewTopic(name=name, partitions=len(PARTITIONS)) for name in (KEPT, HOG, EMPTY)])
    bootstrap = stage.cluster.bootstrap
    loads = {
        name: Load(traffic=Traffic(bootstrap, name, is_idempotent=True, patience_seconds=600))
        for name in (KEPT, HOG)
    }
    stage.fill("other", leaves=stage.room().records_floor + LEFT_BYTES)
    for load in loads.values():
        load.begin()
    try:
        live_on_a_full_disk(stage, admin, loads)
        make_room(stage, loads)
    finally:
        stop(stage.cluster, is_judged=False)
    stage.report["acknowledged"] = loads[KEPT].acknowledged
    return stage.report


def live_on_a_full_disk(stage: Stage, admin: Admin, loads: dict[str, Load]) -> None:
    """Refuse records in time, then lose all other room, and do everything but take records."""
    stage.until("records refused", lambda: stage.room().free_bytes < stage.room().records_floor)
    assert stage.room().free_bytes > stage.room().internal_floor, "records took the last room"
    stage.fill("runaway", leaves=0)
    # The status is sampled, perhaps while the last free space was being filled.
    stage.until(
        "status says disk full", lambda: is_disk_full(*stage.samsa("status")), SERVED_SECONDS
    )
    reserve = stage.options.home / RESERVE_FILE
    assert reserve.exists(), "it was given up before it was needed"
    with stage.timed("topic deleted"):
        admin.delete([EMPTY])
    assert not reserve.exists(), "the deletion needed no room"
    with stage.timed("offsets committed"):
        committed = commit(stage.cluster.bootstrap)
    for name in stage.kinds:
        killed = stage.cluster.kill(name)
        stage.report[f"{name} back"] = round(stage.cluster.wait_for_restart(name, killed), 2)
    loads[HOG].end()
    assert stage.bytes_of(HOG) > MIB
    admin.delete([HOG])
    # Its producer may have made the topic again by now, without a record.
    stage.until("files gone", lambda: stage.bytes_of(HOG) < MIB)
    with stage.timed("down"):
        assert stage.samsa("down")[0] == 0
    stop(stage.cluster, is_judged=False)
    with stage.timed("up"):
        stage.cluster = stage.up()
    assert stage.samsa("status")[0] == 1, "the disk is still full"
    assert fetched(stage.cluster.bootstrap) == committed
    assert not list(stage.options.home.glob("*.damaged*")), "samples were set aside"


def is_disk_full(code: int, text: str) -> bool:
    return code == 1 and "disk full: 0 MiB of" in text


def make_room(stage: Stage, loads: dict[str, Load]) -> None:
    """Remove the other data: clients are served, the reserve is back, and nothing is lost."""
    acknowledged = loads[KEPT].acknowledged
    (stage.folder / "runaway").unlink()
    stage.until("served", lambda: loads[KEPT].acknowledged > acknowledged, SERVED_SECONDS)
    reserve = stage.options.home / RESERVE_FILE
    stage.until("reserve made", reserve.exists, SERVED_SECONDS)
    loads[KEPT].end()
    loads[KEPT].traffic.finish()
    assert stage.samsa("status")[0] == 0
    rows = ConfluentClient().read(stage.cluster.bootstrap, KEPT, PARTITIONS)
    judge(loads[KEPT].traffic, rows)


def commit(bootstrap: str) -> dict[tuple[str, int], int]:
    opened = patiently(lambda: Coordinated(bootstrap, GROUP))
    try:
        offsets = {(KEPT, index): 7 for index in PARTITIONS}
        patiently(lambda: opened.commit(offsets))
    finally:
        opened.close()
    return offsets


def fetched(bootstrap: str) -> dict[tuple[str, int], int]:
    opened = patiently(lambda: Coordinated(bootstrap, GROUP))
    try:
        return patiently(opened.offsets)
    finally:
        opened.close()


if __name__ == "__main__":
    place, *killed_kinds = sys.argv[1:]
    print(json.dumps(run(Path(place), killed_kinds)))  # noqa: T201 - the test reads it
