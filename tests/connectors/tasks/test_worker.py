"""The child of a worker: it ends a worker that hears nothing, and no other."""

import os
import signal
import subprocess
import sys

import pytest

from connectors.tasks import celery_app, worker
from connectors.tasks.worker import Child, Flag, Place
from tests.cluster import ROOT
from tests.connectors.tasks.rows import CLUSTER, add_connector, add_task, queued
from tests.database import project_home
from tests.fakes.slice_ports import FakePorts

# A worker up to the moment at which it would wait for messages.
STARTED = """
import os, sys

os.environ["DJANGO_SETTINGS_MODULE"] = "gateway.settings"
import django

django.setup()
from celery.apps.worker import Worker
from connectors.tasks import worker

Worker.start = lambda self: None
worker.serve(worker.Place(cluster="c", name="w", component="w"), lambda: None, lambda: None)
costly = ("console.pages", "gateway.rest.openapi", "celery.bin.celery", "prompt_toolkit")
print(sorted(name for name in sys.modules if name.startswith(costly)))
"""

pytestmark = pytest.mark.usefixtures("database")


def child() -> Child:
    place = Place(cluster=CLUSTER, name="w1", component="connect-worker-1")
    return Child(celery_app.make(CLUSTER), place, FakePorts().wire, Flag())


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Take down who would be killed."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: found.append((pid, number)))
    return found


def look(one: Child, times: int) -> None:
    for _ in range(times):
        one._listen()  # noqa: SLF001 - what its thread does each few seconds


def test_a_worker_for_which_messages_wait_and_none_comes_ends_itself(
    killed: list[tuple[int, int]],
) -> None:
    one = child()
    queued(add_task(add_connector()))

    look(one, worker.DEAF_AFTER - 1)
    before = list(killed)
    look(one, 1)

    assert before == []
    assert killed == [(os.getppid(), signal.SIGKILL)]


def test_a_worker_that_hears_or_has_nothing_to_hear_goes_on(
    killed: list[tuple[int, int]],
) -> None:
    idle, busy = child(), child()
    look(idle, 10)
    queued(add_task(add_connector()))

    for _ in range(10):
        with busy._working():  # noqa: SLF001 - as a message does
            look(busy, 5)

    assert killed == []


def test_a_bit_that_the_parent_sets_is_seen_by_its_child() -> None:
    flag = Flag()
    pid = os.fork()
    if pid == 0:
        flag.set()
        os._exit(0)
    os.waitpid(pid, 0)

    assert flag.is_set()


@pytest.mark.slow
def test_a_worker_imports_no_pages_and_no_shell() -> None:
    ended = subprocess.run(
        [sys.executable, "-P", "-c", STARTED],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SAMSA_HOME": str(project_home())},
        capture_output=True,
        check=True,
        text=True,
    )

    assert ended.stdout == "[]\n"
