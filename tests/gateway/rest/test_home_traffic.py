"""What all workers of a home count, added up; and how one asks another."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.rest import home_traffic
from gateway.rest import worker as workers
from gateway.rest.home_traffic import NoTraffic, Workers, add_up, ask
from gateway.rest.mounts import Mount, Mounts
from gateway.rest.passed import PassedCallers
from gateway.rest.route import PASSED
from gateway.rest.router import Router, bound
from gateway.rest.traffic import PASSED_ROUTES, STEPS, Counter, PassedTraffic
from gateway.rest.worker import Place, Worker
from tests.fakes import asgi


def worker(folder: Path, name: str) -> Worker:
    made = Worker(Place(name=name, home=folder, sockets=folder))
    made.cluster_id = "c"
    return made


@contextmanager
def serving(path: Path, worker: Worker) -> Iterator[None]:
    """Answer one request on a socket as that worker would."""
    router = Router(
        bound(PASSED_ROUTES, worker, {}),
        callers=PassedCallers(),
        traffic=PassedTraffic(worker.traffic),
        cluster_id=lambda: "c",
    )
    passed = Mounts([], passed=Mount(prefix=PASSED, router=router))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                first, *lines = connection.recv(65_536).decode().split("\r\n")
                headers = dict(line.split(": ", 1) for line in lines if line)
                target = first.split(" ")[1]
                application = passed.find_own(asgi.scope_of("GET", target, headers))
                said = asyncio.run(asgi.asked(application, "GET", target, headers=headers))
                assert said is not None
                head = f"HTTP/1.1 {said.status} x\r\nContent-Length: {len(said.body)}\r\n\r\n"
                connection.sendall(head.encode() + said.body)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def test_what_workers_did_in_the_same_step_is_added_up(tmp_path: Path) -> None:
    one, other = Counter(monotonic=lambda: 90), Counter(monotonic=lambda: 105)
    one.add("token:a", requests=1, records=2)
    other.add("token:a", requests=1, bytes_in=9)
    with other.opened("user:b"):
        found = add_up({"1": one.recent(), "2": other.recent()}, ["3"])

    first, second = found.callers
    assert (first.key, first.total("requests"), first.total("bytes_in")) == ("token:a", 2, 9)
    assert first.amounts("records")[-2:] == [2, 0]
    assert len(first.steps) == STEPS
    assert (second.key, second.open, second.total("requests")) == ("user:b", 1, 0)
    assert (found.answered, found.silent) == (("1", "2"), ("3",))


def test_a_worker_tells_another_one_what_it_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = worker(tmp_path, "web"), worker(tmp_path, "gateway-1")
    monkeypatch.setattr(workers._Process, "worker", here)  # noqa: SLF001 - its one name
    here.traffic.add("token:a", requests=1)
    there.traffic.add("token:a", requests=2, records=5)

    with serving(here.place.socket_of("gateway-1"), there):
        found = Workers().read()

    (caller,) = found.callers
    assert (caller.total("requests"), caller.total("records")) == (3, 5)
    assert found.answered == ("web", "gateway-1")


def test_a_worker_that_has_gone_is_named_and_the_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = worker(tmp_path, "web")
    monkeypatch.setattr(workers._Process, "worker", here)  # noqa: SLF001 - its one name
    (tmp_path / "gateway-1.sock").touch()

    found = Workers().read()

    assert (found.answered, found.silent) == (("web",), ("gateway-1",))


def test_who_is_no_worker_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_traffic, "signed", lambda *_call: "made-up")
    path = tmp_path / "gateway-1.sock"

    with serving(path, worker(tmp_path, "gateway-1")):
        assert ask(path) is None


def test_a_process_that_is_still_starting_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers._Process, "worker", None)  # noqa: SLF001 - before the start

    with pytest.raises(NoTraffic, match="still starting"):
        Workers().read()
