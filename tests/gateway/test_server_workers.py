"""A home with two gateway workers: they share a port, and what dies comes back."""

import asyncio
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from brokers.supervisor.components import valkey_socket
from gateway.shared.link import Address, opened
from tests.builders.certificates import certificate
from tests.cluster import ROOT, Cluster, running_cluster
from tests.extras import requires

pytestmark = pytest.mark.slow
# A worker that stops closes its sockets within this.
CLOSED_S = 1.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("workers")
    with running_cluster(folder / "home", has_web=True, gateway_workers=2) as cluster:
        yield cluster


def answer(address: str, path: str, method: str = "GET") -> tuple[int, str, bytes]:
    parts = urlsplit(address)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection:
        connection.request(method, path)
        found = connection.getresponse()
        return found.status, found.headers["Content-Type"], found.read()


def answer_of(worker: Path, path: str) -> bytes:
    """Ask a worker on its own socket; return all that it says."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(str(worker))
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        with connection.makefile("rb") as said:
            return said.read()


def test_what_nobody_serves_is_told_as_every_error_is(home: Cluster) -> None:
    at_gateway = answer(home.gateway, "/nothing/a%2Fb")
    at_web = answer(home.console, "/v3/nothing", "POST")

    for status, kind, body in (at_gateway, at_web):
        assert (status, kind) == (404, "application/json")
        assert json.loads(body)["error_code"] == 404
    assert b"/nothing/a%2Fb" in at_gateway[2]


def test_the_gateways_own_address_answers_a_probe_without_a_token(home: Cluster) -> None:
    assert answer(home.gateway, "/") == (200, "application/vnd.kafka.v2+json", b"{}")


def test_each_worker_is_asked_on_a_socket_that_is_nobody_elses(home: Cluster) -> None:
    sockets = [home.folder / "run" / f"{name}.sock" for name in ("gateway-1", "gateway-2", "web")]

    for path in sockets:
        assert path.stat().st_mode & 0o077 == 0
        assert b'"can_change": ' in answer_of(path, "/health")
        assert b"is not served on this socket" in answer_of(path, "/login")


def test_the_owner_of_the_home_needs_no_token_for_connect_on_its_machine(home: Cluster) -> None:
    run = home.folder / "run"

    assert answer_of(run / "web.sock", "/connect/connectors").endswith(b"\r\n\r\n[]")
    assert b"is not served on this socket" in answer_of(
        run / "gateway-1.sock", "/connect/connectors"
    )
    assert answer(home.console, "/connect/connectors")[0] == 401


def test_a_worker_that_is_killed_comes_back_and_the_port_answers_meanwhile(home: Cluster) -> None:
    killed = home.kill("gateway-1")

    during = answer(home.gateway, "/health")[0]
    home.wait_for_restart("gateway-1", killed)

    assert during == 200
    assert b'"can_change": ' in answer_of(home.folder / "run" / "gateway-1.sock", "/health")


def test_every_process_hears_what_the_others_were_asked_for(home: Cluster) -> None:
    channel = f"samsa:{(home.folder / 'cluster-id').read_text().strip()}:news:rates"

    async def listeners() -> int:
        link = await opened(Address(path=str(valkey_socket(home.home))))
        [[_, count]] = await link.ask([("PUBSUB", "NUMSUB", channel)])
        link.close()
        return int(count)

    # Two workers and the web server; those that have restarted listen again within moments.
    home.wait(lambda: asyncio.run(listeners()) == 3, "three listeners", seconds=60)


def test_without_what_they_share_workers_go_on(home: Cluster) -> None:
    killed = home.kill("valkey")

    during = answer(home.gateway, "/health")[0]
    home.wait_for_restart("valkey", killed)

    assert during == 200


@requires("openssl")
def test_a_home_with_a_certificate_serves_console_and_gateway_by_tls(tmp_path: Path) -> None:
    made, key = certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(made))

    with running_cluster(
        tmp_path / "home",
        has_web=True,
        gateway_workers=1,
        certificate=(made, key),
        # With TLS they may be open to a network, which brokers may not without a word.
        web_bind="0.0.0.0",  # noqa: S104 - as an operator does it
    ) as cluster:
        bootstrap, answers = cluster.bootstrap, []
        for address in (cluster.gateway, cluster.console):
            parts = urlsplit(address)
            with closing(
                http.client.HTTPSConnection(parts.netloc, timeout=60, context=trust)
            ) as connection:
                connection.request("GET", "/health")
                answer = connection.getresponse()
                shown = answer.getheader("strict-transport-security"), answer.getheader("server")
                answers.append((parts.scheme, answer.status, *shown))

    # Browsers come to the console only.
    assert answers == [("https", 200, None, None), ("https", 200, "max-age=31536000", None)]
    assert bootstrap.startswith("127.0.0.1:")


def test_a_worker_beyond_this_machine_without_tls_refuses_to_start(home: Cluster) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:  # noqa: S104 - what is refused
        descriptor = listener.fileno()
        ended = subprocess.run(
            [sys.executable, "-m", "gateway", "--fd", str(descriptor), "--grace", "1"],
            cwd=ROOT,
            env={**os.environ, "SAMSA_HOME": str(home.folder)},
            pass_fds=(descriptor,),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert ended.returncode == 1
    assert "add --web-cert and --web-key" in ended.stderr


@pytest.mark.alone
def test_socket_of_a_worker_that_stops_gets_its_receipts_and_then_1012(home: Cluster) -> None:
    made = subprocess.run(
        [sys.executable, "manage.py", "tokens", "create", "--write=*", "--create=*", "--", "stop"],
        cwd=ROOT,
        env={**os.environ, "SAMSA_HOME": str(home.folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    token = {"Authorization": f"Bearer {made.stdout.strip()}"}
    address = f"ws://{urlsplit(home.gateway).netloc}/ws/v1"

    async def work() -> tuple[list[str], list[int], int | None, float]:
        async with connect(address, additional_headers=token) as connection:
            for number in range(300):
                frame = {"type": "produce", "id": str(number), "topic": "stop", "value": "v"}
                await connection.send(json.dumps(frame))
            frames = [json.loads(await connection.recv()) for _ in range(2)]
            killed = [home.kill(name, signal.SIGTERM) for name in ("gateway-1", "gateway-2")]
            killed_at = time.monotonic()
            frames += [json.loads(text) async for text in until_close(connection)]
            took_s = time.monotonic() - killed_at
        return [each["type"] for each in frames[1:]], killed, connection.close_code, took_s

    kinds, killed, code, took_s = asyncio.run(work())
    for name, pid in zip(("gateway-1", "gateway-2"), killed, strict=True):
        home.wait_for_restart(name, pid)

    # Frames that arrive while it stops get an error.
    assert "receipt" in kinds
    assert set(kinds) <= {"receipt", "error"}
    assert code == 1012
    assert took_s < CLOSED_S


async def until_close(connection: ClientConnection) -> AsyncIterator[str]:
    with suppress(ConnectionClosed):
        while True:
            yield str(await connection.recv())


def test_a_worker_that_is_told_to_stop_ends_by_itself(home: Cluster) -> None:
    log = home.home.log_file("gateway-2")
    before = log.read_text(encoding="utf-8").count("Finished server process")

    killed = home.kill("gateway-2", signal.SIGTERM)
    home.wait_for_restart("gateway-2", killed)

    assert log.read_text(encoding="utf-8").count("Finished server process") == before + 1
