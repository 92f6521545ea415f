"""What a connector sends to a server that its config names, and what it never sends."""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from connectors.plugins.postgres.addresses import Address
from connectors.plugins.postgres.connection import reach
from connectors.sdk import outgoing
from connectors.sdk.configs import Secret

psycopg = pytest.importorskip("psycopg")
SSL_REQUEST = 80_877_103
ASK_PASSWORD = b"R" + struct.pack(">ii", 8, 3)


class Curious:
    """A server that asks for a password, and records everything it receives."""

    def __init__(self) -> None:
        self.told = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._thread.join(10)
        self._listener.close()

    def _serve(self) -> None:
        self._listener.settimeout(10)
        client, _ = self._listener.accept()
        with client:
            client.settimeout(10)
            size, code = struct.unpack(">ii", client.recv(8))
            if code == SSL_REQUEST:
                client.sendall(b"N")
                size, code = struct.unpack(">ii", client.recv(8))
            self.told += client.recv(size)
            client.sendall(ASK_PASSWORD)
            self.told += client.recv(4096)


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a worker whose home has a database of its own."""
    monkeypatch.setenv(outgoing.SETTING, "127.0.0.1")
    for name, value in {
        "PGUSER": "house-user",
        "PGPASSWORD": "house-secret",
        "PGOPTIONS": "-c house.setting=1",
        "PGHOST": "house-host",
        "PGCLIENTENCODING": "LATIN1",
        "PGTARGETSESSIONATTRS": "standby",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def server() -> Iterator[Curious]:
    made = Curious()
    yield made
    made.close()


def address(server: Curious) -> Address:
    return Address(host="127.0.0.1", port=server.port, database="theirs", ssl_mode="disable")


@pytest.mark.usefixtures("house")
@pytest.mark.parametrize(("user", "password"), [(None, None), ("ann", None), ("ann", Secret(""))])
def test_a_server_learns_nothing_of_how_the_house_reaches_its_own(
    server: Curious, user: str | None, password: Secret | None
) -> None:
    with pytest.raises(psycopg.OperationalError):
        reach(address(server), user=user, password=password)
    server.close()

    assert b"theirs" in server.told
    assert b"house" not in server.told


@pytest.mark.usefixtures("house")
def test_a_server_gets_the_password_of_the_config(server: Curious) -> None:
    with pytest.raises(psycopg.OperationalError):
        reach(address(server), user="ann", password=Secret("s3cret"))
    server.close()

    assert b"s3cret" in server.told
    assert b"house" not in server.told
