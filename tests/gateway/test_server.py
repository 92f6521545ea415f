"""The web server's process, as the supervisor starts it."""

import logging
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from gateway import server
from gateway.server import SILENCE_SECONDS, bound, is_without_calls, listening
from tests.builders import users
from tests.console import cluster_rows
from tests.database import project_home, sqlite_databases

ROOT = Path(__file__).resolve().parents[2]
# Longer than any answer here takes, so that what ends before has ended by itself.
GRACE_SECONDS = 60
TOPIC = f"cluster:{cluster_rows.CLUSTER_ID}"


@contextmanager
def served(home: Path, listener: socket.socket) -> Iterator["subprocess.Popen[str]"]:
    for name in ("secrets", "cluster-id"):
        source = project_home() / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, home / name)
    command = ["-m", "gateway", "--fd", str(listener.fileno()), "--grace", str(GRACE_SECONDS)]
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "SAMSA_HOME": str(home), "SAMSA_ALLOWED_HOSTS": ""},
        pass_fds=(listener.fileno(),),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def asked(port: int, target: str, cookie: str) -> socket.socket:
    """Send a request. The socket's timeout is for a server that is stuck."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(
        f"GET {target} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n".encode()
    )
    return connection


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    told = b""
    while wanted not in told:
        piece = connection.recv(65_536)
        assert piece, f"the server has closed after {told!r}"
        told += piece
    return told


@pytest.mark.slow
def test_addresses_of_sockets_stay_out_of_the_log() -> None:
    kept = [
        is_without_calls(logging.makeLogRecord({"msg": message, "levelno": logging.INFO}))
        for message in ('%s - "WebSocket %s" [accepted]', "Started server process")
    ]
    assert kept == [False, True]


def test_headers_of_handshakes_stay_out_of_the_log_at_any_level() -> None:
    header = logging.makeLogRecord({"msg": "< authorization: Bearer x", "levelno": logging.DEBUG})

    assert not is_without_calls(header)


def test_open_streams_are_told_of_changes_and_go_before_the_server_does(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, sqlite_databases(tmp_path):
        shown, browser = cluster_rows.cluster(version=7), Client()
        browser.force_login(users.user("alice"))
        name = settings.SESSION_COOKIE_NAME
        cookie = f"{name}={browser.cookies[name].value}"
        port = listener.getsockname()[1]

        with (
            served(tmp_path, listener) as process,
            asked(port, f"/events?topic={TOPIC}", cookie) as tab,
        ):
            head = read_until(tab, b'"version": 7')
            type(shown).objects.update(version=8)
            read_until(tab, b'"version": 8')
            process.send_signal(signal.SIGTERM)
            end = read_until(tab, b"0\r\n\r\n")
            log = process.communicate()[1]

    assert b"200 OK" in head
    assert b"text/event-stream" in head
    assert b"default-src 'none'" in head
    assert b"event: end\ndata: restarting\n\n" in end
    assert "Finished server process" in log
    assert "graceful shutdown exceeded" not in log


def test_connections_are_given_up_by_the_kernel_once_nothing_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        listener = listening(bound.detach(), untaken_ms=1_234)
    with listener, socket.create_connection(listener.getsockname()), listener.accept()[0] as served:
        options = [
            served.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
            served.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            served.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
            # Small answers leave at once; a socket of an unknown family would wait for more.
            listener.family,
        ]

    assert options == [1_234, 1, SILENCE_SECONDS, socket.AF_INET]


@pytest.mark.slow
def test_a_connection_that_never_reads_is_ended_by_the_kernel() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        listener = listening(bound.detach(), untaken_ms=200)
    with listener, socket.create_connection(listener.getsockname()), listener.accept()[0] as served:
        served.settimeout(60)

        with pytest.raises(OSError, match="Connection timed out"):
            send_on_and_on(served)


def send_on_and_on(connection: socket.socket) -> None:
    """Fill the buffers of both sides, and wait for room that never comes."""
    while True:
        connection.sendall(bytes(1 << 20))


def test_a_process_may_make_its_own_socket() -> None:
    with socket.socket(fileno=bound("127.0.0.1:0")) as listener:
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1


@pytest.mark.parametrize("address", ["8082", ":8082", "127.0.0.1:x", "127.0.0.1:99999"])
def test_an_address_that_nobody_can_listen_on_ends_the_start(address: str) -> None:
    with pytest.raises(SystemExit) as ended:
        bound(address)

    assert address in str(ended.value)


class Peer:
    """A connection whose other end runs as a user."""

    def __init__(self, user: int) -> None:
        self._user = user

    def getsockopt(self, *_which: int) -> bytes:
        return server.CREDENTIALS.pack(1, self._user, 1)


def test_the_owner_of_the_home_is_known_by_the_kernel() -> None:
    own = pwd.getpwuid(os.geteuid()).pw_name
    here, there = socket.socketpair()
    with here, there:
        assert server.owner_at(here) == own


def test_another_user_at_the_own_socket_is_no_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    peers: list[Any] = [Peer(user) for user in (4712, 4711, 0)]

    assert [server.owner_at(peer) for peer in peers] == [None, "4711", "root"]
