"""What all workers of one test run share: homes and servers that are started once per run.

A test asks for a service by name and options. The process that controls the run starts it for the
first asker, answers later askers from memory, and stops everything when the run ends. A service is
a row in `tests/suite/services.py`; a test that kills, restarts or reconfigures what it uses needs
its own.

The controlling process starts the services itself, in a thread that lives as long as the run:
the kernel ends a supervisor when the thread that started it ends.
"""

import atexit
import fcntl
import hashlib
import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

# Where workers, which inherit the environment of the controlling process, find it.
ADDRESS_VARIABLE: Final = "SAMSA_TEST_SHARED"
# Starts happen one after another: a home takes two seconds, twenty on a machine that is busy.
ANSWER_SECONDS: Final = 180
# Every service holds processes until the end of the run. More kinds than this means that tests
# ask with options of their own, which shares nothing.
MAX_SERVICES: Final = 12
MAX_LINE_BYTES: Final = 64 * 1024
# Topic names take 249 characters; this keeps names readable in failures.
NAME_CHARACTERS: Final = 8
STOP: Final = b"stop\n"

Options = Mapping[str, Any]
# Takes an empty folder and the options; what it yields must fit into JSON.
Service = Callable[..., AbstractContextManager[Any]]


class SharedFailure(AssertionError):
    """A shared service did not start or did not stop; the message is what its starter raised."""


class Keeper:
    """Starts services on request in one thread, and stops them in reverse order."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._services = services
        self._folder = Path(tempfile.mkdtemp(prefix="samsa-shared-"))
        self._answers: dict[str, bytes] = {}
        self._failure: Exception | None = None
        self._door = socket.socket(socket.AF_UNIX)
        self.address = str(self._folder / "socket")
        self._door.bind(self.address)
        self._door.listen(socket.SOMAXCONN)
        self._thread = threading.Thread(target=self._serve, name="shared", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop all services; raise what went wrong while they stopped."""
        with connected(self.address) as door:
            door.sendall(STOP)
        # Unbounded: every stop below has its own limit.
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._failure is not None:
            raise SharedFailure(str(self._failure)) from self._failure

    def _serve(self) -> None:
        with self._door:
            try:
                with ExitStack() as running:
                    while self._answer_one(running) != STOP:
                        pass
            except Exception as error:  # noqa: BLE001 (close raises it where it is reported)
                self._failure = error

    def _answer_one(self, running: ExitStack) -> bytes:
        """Answer the next asker; return its line, which is empty where it was killed."""
        asker, _ = self._door.accept()
        with asker, asker.makefile("rb") as lines:
            question = lines.readline(MAX_LINE_BYTES)
            if question.endswith(b"\n") and question != STOP:
                # An asker that was interrupted does not wait for its answer.
                with suppress(OSError):
                    asker.sendall(self._answer(question.decode(), running))
        return question

    def _answer(self, question: str, running: ExitStack) -> bytes:
        # A failed start is remembered too: every asker fails at once, with the same reason.
        if question not in self._answers:
            self._answers[question] = json.dumps(self._start(question, running)).encode() + b"\n"
        return self._answers[question]

    def _start(self, question: str, running: ExitStack) -> dict[str, Any]:
        name, options = json.loads(question)
        if len(self._answers) >= MAX_SERVICES:
            return {"error": f"{MAX_SERVICES} shared services run; {question} would be one more"}
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder))
        try:
            return {"told": running.enter_context(self._services[name](folder, **options))}
        except Exception as error:  # noqa: BLE001 (it belongs to the tests that asked)
            return {"error": f"{name}: {type(error).__name__}: {error}"}


@contextmanager
def keeping(services: Mapping[str, Service]) -> Iterator[Keeper]:
    """Serve this process and its children until the block ends."""
    keeper = Keeper(services)
    outer = os.environ.get(ADDRESS_VARIABLE)
    os.environ[ADDRESS_VARIABLE] = keeper.address
    try:
        yield keeper
    finally:
        if outer is None:
            del os.environ[ADDRESS_VARIABLE]
        else:
            os.environ[ADDRESS_VARIABLE] = outer
        keeper.close()


def ask(name: str, /, **options: Any) -> Any:
    """Return what a shared service tells of itself; start it where no test has asked yet."""
    address = os.environ.get(ADDRESS_VARIABLE)
    assert address is not None, "shared services exist only while pytest runs"
    question = json.dumps([name, options], sort_keys=True)
    with connected(address) as door, door.makefile("rb") as lines:
        door.sendall(question.encode() + b"\n")
        answer = json.loads(lines.readline(MAX_LINE_BYTES))
    if "error" in answer:
        raise SharedFailure(answer["error"])
    return answer["told"]


def run_folder() -> Path | None:
    """Return the folder of this run, which is removed at its end; None outside of a run."""
    address = os.environ.get(ADDRESS_VARIABLE)
    return None if address is None else Path(address).parent


@cache
def own_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="samsa-own-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of this run; the first process that asks for it fills it.

    Outside of a run it belongs to this process.
    """
    place = run_folder() or own_folder()
    made = place / name
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            # One whose filling failed stays, without the name.
            folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=place))
            make(folder)
            folder.rename(made)
    return made


def connected(address: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(ANSWER_SECONDS)
    made.connect(address)
    return made


def unique_name(stem: str, owner: str) -> str:
    """Return a name that only one owner, the id of a test or module, has in a run."""
    return f"{stem}-{hashlib.sha256(owner.encode()).hexdigest()[:NAME_CHARACTERS]}"
