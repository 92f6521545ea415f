"""The agent's socket: what the worst bytes cost, and what one broker can do to another."""

import asyncio
import os
import secrets
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from brokers.cluster import link
from brokers.cluster.image import Position
from brokers.cluster.proposals import CreateTopic, Proposal
from brokers.cluster.store import Registered, Registration
from brokers.protocol.errors import ErrorCode
from tests.brokers.controlplane.host import SOON_S, Host, is_serving, new_cluster, running_host

from brokers.controlplane import models  # isort: skip
from brokers.controlplane.agent import server as agent_server  # isort: skip
from brokers.controlplane.agent.server import AgentServer  # isort: skip

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


class RawLink:
    """A connection to the agent, frame by frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._frames = link.FrameReader(link.decode_from_agent)
        self._waiting: list[link.FromAgent] = []

    async def send(self, *messages: link.FromBroker) -> None:
        await self.send_bytes(b"".join(map(link.encode, messages)))

    async def send_bytes(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> link.FromAgent | None:
        """Return the next message but pings; None at the end."""
        async with asyncio.timeout(SOON_S):
            while True:
                while self._waiting:
                    message = self._waiting.pop(0)
                    if not isinstance(message, link.Ping):
                        return message
                try:
                    data = await self.reader.read(65536)
                except ConnectionResetError:
                    return None
                if not data:
                    return None
                self._waiting += self._frames.feed(data)

    async def register(self, registration: Registration | None = None) -> Registered:
        await self.send(link.Register(registration=registration or some_registration()))
        message = await self.receive()
        assert isinstance(message, Registered), message
        return message


class Agent:
    def __init__(self, host: Host, path: Path) -> None:
        self.host = host
        self.path = path

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[RawLink]:
        reader, writer = await asyncio.open_unix_connection(self.path)
        try:
            yield RawLink(reader, writer)
        finally:
            writer.transport.abort()


def some_registration() -> Registration:
    return Registration(incarnation=secrets.token_bytes(16), host="127.0.0.1", port=9092)


def run(path: Path, story: Callable[[Agent], Coroutine[object, object, None]]) -> None:
    cluster_id = new_cluster()

    async def serve() -> None:
        async with running_host(cluster_id) as host:
            server = AgentServer(host.membership, path=path)
            await server.start()
            try:
                await story(Agent(host, path))
            finally:
                await server.close()

    asyncio.run(serve())


GARBAGE = (
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"\x00\x00\x00\x02\x91\xc1",
    b"\x00\x00\x00\x05\xdd\xff\xff\xff\xff",
    link.encode(link.Applied(version=1)),
    link.encode(link.Propose(request_no=1, proposals=())),
)


@pytest.mark.parametrize("data", GARBAGE)
def test_bytes_that_are_no_registration_cost_the_connection_only(
    database: str, tmp_path: Path, data: bytes
) -> None:
    async def story(agent: Agent) -> None:
        async with agent.connected() as good, agent.connected() as bad:
            await good.register()
            await bad.send_bytes(data)

            assert await bad.receive() is None
            await good.send(link.Follow(after=Position()))
            assert isinstance(await good.receive(), link.SnapshotBegin)

    run(tmp_path / "agent.sock", story)


def test_random_bytes_after_a_registration_harm_nobody(database: str, tmp_path: Path) -> None:
    random = Random(7)

    async def story(agent: Agent) -> None:
        async with agent.connected() as good:
            await good.register()
            for _ in range(20):
                async with agent.connected() as bad:
                    await bad.register()
                    body = random.randbytes(random.randrange(1, 200))
                    await bad.send_bytes(link.LENGTH.pack(len(body)) + body)
                    while await bad.receive() is not None:
                        pass
            await good.send(link.Follow(after=Position()))
            assert isinstance(await good.receive(), link.SnapshotBegin)

    run(tmp_path / "agent.sock", story)


def test_a_connection_that_says_nothing_is_closed(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_server, "REGISTER_WITHIN_S", 0.01)

    async def story(agent: Agent) -> None:
        async with agent.connected() as silent:
            assert await silent.receive() is None

    run(tmp_path / "agent.sock", story)


def test_one_more_connection_than_allowed_is_closed(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_server, "MAX_CONNECTIONS", 1)

    async def story(agent: Agent) -> None:
        async with agent.connected() as first:
            await first.register()
            async with agent.connected() as second:
                assert await second.receive() is None

    run(tmp_path / "agent.sock", story)


def test_another_version_of_the_link_is_refused_in_words(database: str, tmp_path: Path) -> None:
    async def story(agent: Agent) -> None:
        async with agent.connected() as other:
            greeting = link.Register(registration=some_registration())
            await other.send(replace(greeting, link_version=99))
            message = await other.receive()

            assert isinstance(message, link.Refused)
            assert message.error is ErrorCode.UNSUPPORTED_VERSION
            assert "restart both" in message.message
            assert await other.receive() is None

    run(tmp_path / "agent.sock", story)


@pytest.mark.parametrize(
    "wrong", [{"host": "h" * 300}, {"rack": "r" * 300}, {"boot_id": "b" * 300}, {"port": 70_000}]
)
def test_a_registration_that_no_row_can_hold_is_refused_in_words(
    database: str, tmp_path: Path, wrong: dict[str, object]
) -> None:
    async def story(agent: Agent) -> None:
        async with agent.connected() as other:
            registration = replace(some_registration(), **wrong)  # type: ignore[arg-type]
            await other.send(link.Register(registration=registration))
            message = await other.receive()

            assert isinstance(message, link.Refused)
            assert message.error is ErrorCode.INVALID_REGISTRATION

    run(tmp_path / "agent.sock", story)


def test_a_position_that_never_was_is_refused_in_words(database: str, tmp_path: Path) -> None:
    async def story(agent: Agent) -> None:
        async with agent.connected() as other:
            await other.register()
            await other.send(link.Follow(after=Position(version=99, id=secrets.token_bytes(16))))
            message = await other.receive()

            assert isinstance(message, link.Refused)
            assert "METADATA_REGRESSED" in message.message

    run(tmp_path / "agent.sock", story)


def test_brokers_are_pinged_with_the_age_of_the_last_read(database: str, tmp_path: Path) -> None:
    async def story(agent: Agent) -> None:
        async with agent.connected() as broker:
            await broker.register()
            async with asyncio.timeout(SOON_S):
                data = await broker.reader.read(100)
            messages = list(link.FrameReader(link.decode_from_agent).feed(data))

            assert isinstance(messages[0], link.Ping)
            assert 0 <= messages[0].db_age_ms < 60_000

    run(tmp_path / "agent.sock", story)


def test_a_reader_that_stops_reading_holds_up_nobody(database: str, tmp_path: Path) -> None:
    async def story(agent: Agent) -> None:
        async with agent.connected() as slow, agent.connected() as quick:
            await slow.register()
            await slow.send(link.Follow(after=Position()))
            registered = await quick.register()
            await quick.send(
                link.Follow(after=Position()), link.Applied(version=registered.version)
            )
            await agent.host.until(lambda: is_serving(agent.host, 2))
            for number in range(20):
                await quick.send(
                    link.Propose(
                        request_no=number,
                        proposals=(
                            Proposal(
                                id=secrets.token_bytes(16),
                                action=CreateTopic(name=f"t{number}", partitions=1_000),
                                actor="User:alice",
                            ),
                        ),
                    )
                )
            answers: list[link.Outcomes] = []
            while len(answers) < 20:
                message = await quick.receive()
                answers += [message] if isinstance(message, link.Outcomes) else []

            assert all(outcome.error == 0 for each in answers for outcome in each.outcomes)
            assert sum(len(each.outcomes) for each in answers) == 20
            # A call is answered once its change is committed, which the image may not have read.
            await agent.host.until(lambda: len(agent.host.store.image.topics) == 20)

    agent_membership = "brokers.controlplane.membership.APPLIED_WITHIN_S"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agent_membership, 0.01)
        # On a busy machine the last call waits for longer than a broker would be left waiting.
        patch.setattr("brokers.controlplane.store.PATIENCE_S", 60.0)
        run(tmp_path / "agent.sock", story)


def test_a_broker_is_heard_while_more_calls_wait_than_may(database: str, tmp_path: Path) -> None:
    gate = threading.Event()

    async def story(agent: Agent) -> None:
        async with agent.connected() as broker:
            registered = await broker.register()
            slow = asyncio.create_task(agent.host.store.ask(gate.wait))
            try:
                calls = agent_server.MAX_CALLS + 3
                for number in range(calls):
                    await broker.send(link.Propose(request_no=number, proposals=()))
                session = agent.host.membership.session_of(registered.broker_id)
                assert session is not None
                heard, session.deadline = session.deadline, 0.0
                await broker.send(link.Pong())

                # Those that are too many come back, and the answer to the ping was heard by then.
                later = [await broker.receive() for _ in range(3)]
                async with asyncio.timeout(SOON_S):
                    while session.deadline < heard:  # noqa: ASYNC110 - it has no event
                        await asyncio.sleep(0)
            finally:
                gate.set()
                await slow
            done = [await broker.receive() for _ in range(calls - 3)]

        assert all(isinstance(each, link.Outcomes) and each.is_later for each in later)
        assert not any(isinstance(each, link.Outcomes) and each.is_later for each in done)

    run(tmp_path / "agent.sock", story)


def test_calls_that_take_too_much_room_at_once_come_later(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_server, "MAX_CALL_BYTES", 1000)
    gate = threading.Event()
    large = Proposal(
        id=secrets.token_bytes(16),
        action=CreateTopic(name="t", assignments=((1,),) * 600),
        actor="User:alice",
    )

    async def story(agent: Agent) -> None:
        async with agent.connected() as broker:
            await broker.register()
            slow = asyncio.create_task(agent.host.store.ask(gate.wait))
            try:
                for number in range(2):
                    await broker.send(link.Propose(request_no=number, proposals=(large,)))
                second = await broker.receive()
            finally:
                gate.set()
                await slow
            first = await broker.receive()
            await broker.send(link.Propose(request_no=2, proposals=(large,)))
            third = await broker.receive()

        said = [each for each in (first, second, third) if isinstance(each, link.Outcomes)]
        assert [(each.request_no, each.is_later) for each in said] == [
            (0, False),
            (1, True),
            (2, False),
        ]

    run(tmp_path / "agent.sock", story)


def test_a_second_wish_to_follow_costs_the_connection(database: str, tmp_path: Path) -> None:
    async def story(agent: Agent) -> None:
        async with agent.connected() as broker:
            await broker.register()
            await broker.send(link.Follow(after=Position()), link.Follow(after=Position()))
            while (message := await broker.receive()) is not None:
                assert not isinstance(message, link.Outcomes)

    run(tmp_path / "agent.sock", story)


def test_the_socket_is_its_owners_alone_and_taken_over_from_the_dead(
    database: str, tmp_path: Path
) -> None:
    path = tmp_path / "agent.sock"
    path.write_text("left by a dead agent")

    async def story(agent: Agent) -> None:
        assert stat.S_IMODE(os.stat(agent.path).st_mode) == 0o600
        async with agent.connected() as broker:
            await broker.register()

    run(path, story)

    assert not path.exists()


def test_nothing_is_done_for_a_broker_whose_position_never_was(
    database: str, tmp_path: Path
) -> None:
    async def story(agent: Agent) -> None:
        async with agent.connected() as broker:
            registered = await broker.register()
            await broker.send(link.Applied(version=registered.version))
            async with asyncio.timeout(SOON_S):
                while not is_serving(agent.host):
                    await agent.host.store.moved.wait()
            ahead = Position(agent.host.store.image.version + 5, secrets.token_bytes(16))
            proposal = Proposal(
                id=secrets.token_bytes(16),
                action=CreateTopic(name="late"),
                actor="User:test",
                broker_id=registered.broker_id,
                broker_epoch=registered.broker_epoch,
            )
            await broker.send(
                link.Follow(after=ahead), link.Propose(request_no=1, proposals=(proposal,))
            )
            answer = await broker.receive()

        assert isinstance(answer, link.Refused), answer
        # Whatever went to the database's thread before this question is done by now.
        assert await agent.host.store.ask(models.Topic.objects.count) == 0

    run(tmp_path / "agent.sock", story)


REGISTER_AND_END = """
import socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
link.sendall(bytes.fromhex(sys.argv[2]))
"""


def test_a_broker_that_ended_before_the_agent_could_look_is_not_registered(
    database: str, tmp_path: Path
) -> None:
    async def story(agent: Agent) -> None:
        frame = link.encode(link.Register(registration=some_registration())).hex()
        program = (sys.executable, "-c", REGISTER_AND_END, str(agent.path), frame)
        # The loop of the agent stands meanwhile, as that of one that was stopped.
        subprocess.run(program, check=True)  # noqa: ASYNC221

        async with agent.connected() as broker:
            registered = await broker.register()

        # The dead one, whose link came first, has got no id.
        assert registered.broker_id == 1
        await agent.host.until(lambda: 1 in agent.host.store.image.brokers)
        assert [*agent.host.store.image.brokers] == [1]

    run(tmp_path / "agent.sock", story)
