"""The agent as a process: `manage.py agent` in a home of its own."""

import asyncio
import json
import os
import secrets
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from brokers.clock import SystemClock
from brokers.cluster.apply import apply
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.levels import KNOWN_LEVEL
from brokers.cluster.proposals import CreateTopic, Proposal
from brokers.cluster.store import Registered, Registration
from brokers.protocol.errors import KafkaError
from brokers.server.agent_link import AgentLink
from tests.database import pointed_at_postgres, project_home
from tests.extras import requires
from tests.fakes.listener import until
from tests.postgres import PostgresServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[4]
SOON_S = 30
# The agent is one of five processes that start within three seconds on two cores.
WARM_START_CPU_S = 1.0


@dataclass(slots=True, kw_only=True)
class Agent:
    process: subprocess.Popen[bytes]
    socket: Path
    log: Path

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(SOON_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(SOON_S)

    def events(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def agent(home: Path, *, database_url: str = "", **more: str) -> Iterator[Agent]:
    """Start the agent of a home and wait until it is ready; `more` is its environment's."""
    home.mkdir(exist_ok=True)
    socket, log = home / "a.sock", home / "agent.log"
    mine, theirs = os.pipe()
    environment = {
        **os.environ,
        "SAMSA_HOME": str(home),
        "SAMSA_AGENT_SOCKET": str(socket),
        "SAMSA_READY_FD": str(theirs),
        "DATABASE_URL": database_url,
        **more,
    }
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    with log.open("ab") as stderr:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "agent"],
            cwd=ROOT,
            env=environment,
            pass_fds=[theirs],
            stderr=stderr,
        )
    os.close(theirs)
    try:
        with os.fdopen(mine) as pipe:
            assert '"ready": true' in pipe.readline(), log.read_text()
        yield Agent(process=process, socket=socket, log=log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(SOON_S)


class LinkedBroker:
    """A broker's half of the link, following."""

    def __init__(self, socket: Path, broker_id: int = -1) -> None:
        self.link = AgentLink(str(socket), clock=SystemClock())
        self.image: ClusterImage | None = None
        self.registered: Registered | None = None
        self._registration = Registration(
            incarnation=secrets.token_bytes(16),
            host="127.0.0.1",
            port=1,
            broker_id=broker_id,
            metadata_level=KNOWN_LEVEL,
        )
        self._moved = asyncio.Event()

    async def register(self) -> Registered:
        self.registered = await self.link.register(self._registration)
        return self.registered

    async def follow(self) -> None:
        async for update in self.link.follow(Position()):
            if isinstance(update, ClusterImage):
                self.image = update
            else:
                assert self.image is not None
                self.image = apply(self.image, update)
            self.link.applied(self.image.version)
            self._moved.set()
            self._moved = asyncio.Event()

    async def until_serving(self) -> ClusterImage:
        assert self.registered is not None
        async with asyncio.timeout(SOON_S):
            while True:
                broker = self.image and self.image.brokers.get(self.registered.broker_id)
                if self.image and broker and not broker.is_fenced:
                    return self.image
                await self._moved.wait()

    async def create(self, name: str) -> None:
        assert self.registered is not None
        (outcome,) = await self.link.propose(
            [
                Proposal(
                    id=secrets.token_bytes(16),
                    action=CreateTopic(name=name, partitions=1, replication_factor=1),
                    actor="User:alice",
                    broker_id=self.registered.broker_id,
                    broker_epoch=self.registered.broker_epoch,
                )
            ]
        )
        assert not outcome.error, outcome


@asynccontextmanager
async def linked(socket: Path) -> AsyncIterator[LinkedBroker]:
    broker = LinkedBroker(socket)
    await broker.register()
    following = asyncio.create_task(broker.follow())
    await broker.until_serving()
    try:
        yield broker
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await broker.link.close()


def test_a_first_start_makes_the_home_and_a_second_finds_it(tmp_path: Path) -> None:
    with agent(tmp_path / "home") as first:
        assert first.stop() == 0
    with agent(tmp_path / "home") as second:
        assert second.stop() == 0

    password = tmp_path / "home" / "secrets" / "admin-password"
    events = [event["event"] for event in second.events()]
    assert stat.S_IMODE(password.stat().st_mode) == 0o600
    assert stat.S_IMODE(password.parent.stat().st_mode) == 0o700
    assert len(password.read_text().strip()) == 24
    assert events.count("tables.migrated") == 1
    assert events.count("agent.started") == 2


def test_what_an_agent_writes_is_its_owners_alone_whoever_starts_it(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with agent(tmp_path / "home") as started:
            started.stop()
    finally:
        os.umask(before)

    for name in ("cluster.db", "web.db", "agent-id"):
        assert stat.S_IMODE((tmp_path / "home" / name).stat().st_mode) == 0o600


def test_a_home_has_one_agent(tmp_path: Path) -> None:
    with agent(tmp_path / "home") as first:
        refused = subprocess.run(
            [sys.executable, "manage.py", "agent"],
            cwd=ROOT,
            env={**os.environ, "SAMSA_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=SOON_S,
            check=False,
        )

        assert refused.returncode == 1
        assert f"in use by an agent with process id {first.process.pid}" in refused.stderr


def test_a_killed_agent_costs_its_brokers_a_reconnect_and_nothing_else(tmp_path: Path) -> None:
    async def story() -> None:
        with agent(tmp_path / "home") as first:
            async with linked(first.socket) as broker:
                await broker.create("before")
                registered, image = broker.registered, broker.image
                assert image is not None
                creating = asyncio.create_task(broker.create("meanwhile"))
                first.kill()
                with agent(tmp_path / "home") as second:
                    await creating
                    await broker.create("after")

                    assert broker.image is not None
                    assert set(broker.image.topics) == {"before", "meanwhile", "after"}
                    assert broker.image.brokers == image.brokers
                    assert broker.registered == registered
                    assert second.stop() == 0

    asyncio.run(story())


def test_a_killed_broker_is_fenced_at_once_and_its_successor_let_in(tmp_path: Path) -> None:
    """The program below is a broker: it registers, says so, and waits to be killed."""
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from tests.brokers.controlplane.agent.test_daemon import LinkedBroker\n"
        "async def main():\n"
        "    broker = LinkedBroker(Path(sys.argv[1]))\n"
        "    await broker.register()\n"
        "    following = asyncio.create_task(broker.follow())\n"
        "    await broker.until_serving()\n"
        "    print(broker.registered.broker_id, flush=True)\n"
        "    await following\n"
        "asyncio.run(main())\n"
    )

    async def story(socket: Path, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        broker_id = int(child.stdout.readline())
        second = LinkedBroker(socket, broker_id)
        with pytest.raises(KafkaError, match="running already"):
            await second.register()
        child.kill()
        child.wait(SOON_S)
        async with asyncio.timeout(2):
            while second.registered is None:
                try:
                    await second.register()
                except KafkaError:
                    await asyncio.sleep(0)
        assert second.registered.broker_id == broker_id
        await second.link.close()

    with agent(tmp_path / "home") as running:
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(running.socket)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            asyncio.run(story(running.socket, child))
        finally:
            child.kill()
            child.communicate()
    assert {"broker.registered", "broker.fenced"} <= {e["event"] for e in running.events()}


@pytest.mark.alone
def test_a_warm_start_takes_less_than_a_second_of_cpu(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    """Time on the clock is the machine's; with bytecode, as an installation has it."""
    cached = {"PYTHONPYCACHEPREFIX": str(tmp_path / "pyc"), "PYTHONDONTWRITEBYTECODE": ""}
    with agent(tmp_path / "home", **cached):
        pass

    seconds = []
    for _ in range(3):
        with agent(tmp_path / "home", **cached) as running:
            seconds.append(cpu_seconds(running.process.pid))

    report(f"agent, from its start to ready: {min(seconds):.2f} s of CPU")
    assert min(seconds) <= WARM_START_CPU_S


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@requires("postgresql")
def test_an_agent_outlives_a_restart_of_its_database(
    tmp_path: Path, own_postgres: PostgresServer
) -> None:
    async def story(url: str) -> None:
        with agent(tmp_path / "home", database_url=url) as running:
            async with linked(running.socket) as broker:
                await broker.create("before")
                await asyncio.to_thread(own_postgres.stop, signal.SIGQUIT)
                creating = asyncio.create_task(broker.create("meanwhile"))
                await asyncio.to_thread(own_postgres.start)
                await creating

                # The change comes by itself, after the answer as well.
                await until(
                    lambda: broker.image and set(broker.image.topics) == {"before", "meanwhile"}
                )
            assert running.stop() == 0

    asyncio.run(story(own_postgres.make_database(f"agent_{secrets.token_hex(4)}")))


def test_an_agent_that_waits_for_its_database_makes_every_attempt_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project_home()
    from django.db import connections  # noqa: PLC0415

    from brokers.controlplane.agent import daemon  # noqa: PLC0415
    from gateway.settings import POSTGRES_POOL  # noqa: PLC0415

    attempts = 0

    def begin(_agent_id: str, _now_ms: int) -> tuple[str, str]:
        nonlocal attempts
        attempts += 1
        there = connections["cluster"]
        # A pool that is left would try again after pauses of its own.
        assert "cluster" not in getattr(there, "_connection_pools", {})
        if attempts == 1:
            there.ensure_connection()
        return "cluster", ""

    monkeypatch.setattr(daemon, "_begin", begin)
    monkeypatch.setitem(POSTGRES_POOL, "timeout", 0.1)

    with pointed_at_postgres("postgres://nobody@127.0.0.1:1/nowhere"):
        ready = asyncio.run(daemon._ready_database("agent", SystemClock()))  # noqa: SLF001

    assert (ready, attempts) == (("cluster", ""), 2)
