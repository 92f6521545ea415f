"""The broker as a process: its start, its ready line, its end and its exit code."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.ports import claim_port
from brokers.config import BrokerConfig, ConfigError
from brokers.exit_codes import DISK_FAILED
from brokers.server import daemon
from brokers.storage.disk_failures import MAX_FAILURES
from tests.fakes.agent_server import AgentServer
from tests.fakes.listener import until
from tests.fakes.twin import Twin

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 30

# Reports the modules of a process that has imported all that a broker imports.
DJANGO_FREE = """
import json, sys
import brokers.server.daemon
rooms = ("django", "brokers.controlplane", "structlog", "rich", "logging.config")
print(json.dumps([name for name in sys.modules if name.startswith(rooms)]))
"""


@asynccontextmanager
async def agent(tmp_path: Path) -> AsyncIterator[Twin]:
    twin = Twin()
    server = AgentServer(
        tmp_path / "agent.sock",
        twin.attach,
        detach=lambda door: door.kill(),  # type: ignore[attr-defined]
    )
    await server.start()
    try:
        yield twin
    finally:
        await server.stop()


class Process:
    """One broker process."""

    def __init__(self, process: asyncio.subprocess.Process, ready: asyncio.StreamReader) -> None:
        self.process = process
        self._ready = ready

    async def ready(self) -> dict[str, Any]:
        async with asyncio.timeout(START_SECONDS):
            line = await self._ready.readline()
        answer: dict[str, Any] = json.loads(line) if line else {}
        return answer

    async def says(self, event: str) -> None:
        """Waits for a line of its log; those before it are gone."""
        assert self.process.stderr is not None
        async with asyncio.timeout(START_SECONDS):
            while event.encode() not in await self.process.stderr.readline():
                assert not self.process.stderr.at_eof(), f"it ended before {event}"

    async def end(self) -> tuple[int, list[dict[str, Any]]]:
        """The exit code, and what it wrote."""
        async with asyncio.timeout(START_SECONDS):
            _out, err = await self.process.communicate()
        assert self.process.returncode is not None
        lines = [json.loads(line) for line in err.decode().splitlines() if line.startswith("{")]
        return self.process.returncode, lines

    def signal(self, number: int) -> None:
        self.process.send_signal(number)


@asynccontextmanager
async def broker_process(tmp_path: Path, **environ: str) -> AsyncIterator[Process]:
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "brokers.server",
        cwd=ROOT,
        env={
            **os.environ,
            "SAMSA_AGENT_SOCKET": str(tmp_path / "agent.sock"),
            "SAMSA_LOG_DIR": str(tmp_path / "data"),
            "SAMSA_READY_FD": str(writing),
            **environ,
        },
        pass_fds=(writing,),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writing)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    with os.fdopen(reading, "rb") as pipe:
        transport, _protocol = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        try:
            yield Process(process, reader)
        finally:
            transport.close()
            if process.returncode is None:
                process.kill()
                await process.wait()


def events(lines: list[dict[str, Any]]) -> list[str]:
    return [line["event"] for line in lines]


def test_a_broker_tells_that_it_serves_and_stops_cleanly_when_asked(tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "secret").write_text("s3cret", encoding="ascii")
        async with agent(tmp_path) as twin:
            environ = {"SAMSA_SECRET_FILE": str(tmp_path / "secret")}
            async with broker_process(tmp_path, **environ) as process:
                ready = await process.ready()

                assert ready["id"] == 1
                assert ready["host"] == "127.0.0.1"
                assert ready["inspection_port"] > 0
                assert not twin.image.brokers[1].is_fenced
                assert twin.image.brokers[1].port == ready["port"]
                _reader, writer = await asyncio.open_connection("127.0.0.1", ready["port"])
                writer.close()
                process.signal(signal.SIGTERM)
                code, lines = await process.end()

                assert code == 0
                assert events(lines)[-1] == "broker.stopped"
                assert lines[-1]["clean"] is True

    asyncio.run(story())


def test_a_broker_that_starts_again_keeps_its_id_and_finds_its_dir_clean(tmp_path: Path) -> None:
    async def story() -> None:
        async with agent(tmp_path) as twin:
            async with broker_process(tmp_path) as first:
                await first.ready()
                twin.create_topic("orders", partitions=2)
                await until((tmp_path / "data" / "orders-1" / "partition.metadata").exists)
                first.signal(signal.SIGINT)
                assert (await first.end())[0] == 0

            async with broker_process(tmp_path) as second:
                ready = await second.ready()
                second.signal(signal.SIGTERM)
                _code, lines = await second.end()

            assert ready["id"] == 1
            (loaded,) = [line for line in lines if line["event"] == "logs.loaded"]
            assert (loaded["logs"], loaded["was_clean"]) == (2, True)

    asyncio.run(story())


def test_a_broker_waits_for_its_agent_and_lets_nobody_in(tmp_path: Path) -> None:
    async def story() -> None:
        port = claim_port()
        async with broker_process(tmp_path, SAMSA_PORT=str(port)) as process:
            await process.says("broker.not_registered")
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)

            async with agent(tmp_path):
                assert (await process.ready())["port"] == port
                _reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()

    asyncio.run(story())


def test_a_broker_that_stops_before_it_ever_served_stops_cleanly(tmp_path: Path) -> None:
    async def story() -> None:
        async with broker_process(tmp_path) as process:
            await process.says("broker.not_registered")
            process.signal(signal.SIGTERM)

            code, lines = await process.end()

            assert code == 0
            assert events(lines)[-1] == "broker.stopped"

    asyncio.run(story())


def test_a_taken_port_is_named_and_the_exit_code_says_failed(tmp_path: Path) -> None:
    async def story() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            async with broker_process(tmp_path, SAMSA_PORT=str(port)) as process:
                code, lines = await process.end()

        assert code == 1
        assert f"port {port} of 127.0.0.1 is taken" in lines[-1]["error"]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("SAMSA_AGENT_SOCKET", "", "SAMSA_AGENT_SOCKET is not set"),
        ("SAMSA_PORT", "99999", "SAMSA_PORT is 99999"),
        ("SAMSA_DEFAULTS", "{", "SAMSA_DEFAULTS is not JSON"),
    ],
)
def test_a_configuration_without_sense_is_said_in_one_line(
    tmp_path: Path, name: str, value: str, word: str
) -> None:
    async def story() -> None:
        async with broker_process(tmp_path, **{name: value}) as process:
            code, lines = await process.end()

        assert code == 2
        assert len(lines) == 1
        assert word in lines[0]["error"]

    asyncio.run(story())


def test_a_broker_process_knows_no_django() -> None:
    async def story() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", DJANGO_FREE, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        out, _err = await process.communicate()

        assert json.loads(out) == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("log.retention.ms", "soon", "'soon', and that is no"),
        ("log.retention.msec", "1", "near it: log.retention.ms"),
        ("offsets.topic.segment.bytes", "1048575", "below 1048576"),
        ("max.connections", "0", "is below 1"),
        ("samsa.frame.max.ms", "never", "not a number"),
        ("socket.request.max.bytes", "-1", "'-1', and that is below 1"),
    ],
)
def test_a_broker_config_that_makes_no_sense_is_refused(key: str, text: str, words: str) -> None:
    config = BrokerConfig(agent_socket="a", log_dir="b", defaults={key: text})

    with pytest.raises(ConfigError, match=words) as refused:
        daemon.check_defaults(config)

    assert str(refused.value).startswith("SAMSA_DEFAULTS: ")
    assert key in str(refused.value)


def test_broker_configs_that_make_sense_are_taken() -> None:
    defaults = {"log.retention.ms": "1000", "max.connections": "5", "broker.rack": "here"}

    daemon.check_defaults(BrokerConfig(agent_socket="a", log_dir="b", defaults=defaults))


def test_a_broker_whose_disk_fails_marks_its_log_dir_and_tells_so_by_its_exit_code(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with agent(tmp_path):
            async with broker_process(tmp_path) as process:
                await process.ready()
                # A folder where a checkpoint is to be written.
                (tmp_path / "data" / "recovery-point-offset-checkpoint.tmp").mkdir()
                process.signal(signal.SIGTERM)
                code, lines = await process.end()

            assert code == DISK_FAILED, lines
            mark = tmp_path / "data" / "samsa.disk-failures"
            text = mark.read_text(encoding="utf-8")
            assert "Is a directory" in text
            mark.write_text(text * MAX_FAILURES, encoding="utf-8")

            async with broker_process(tmp_path) as process:
                code, lines = await process.end()
                assert code == DISK_FAILED
                assert "samsa.disk-failures and start the broker again" in lines[-1]["error"]

    asyncio.run(story())
