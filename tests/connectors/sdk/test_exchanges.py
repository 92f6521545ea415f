"""One request, one answer: in time, in size, and from nowhere else."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from connectors.sdk import outgoing
from connectors.sdk.errors import ConfigError, RetriableError
from connectors.sdk.exchanges import MAX_ANSWER_BYTES, Connection, Origin, split, trust
from tests.builders.certificates import certificate
from tests.extras import requires
from tests.fakes.web_server import WebServer


@pytest.fixture(autouse=True)
def loopback_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(outgoing.SETTING, "127.0.0.1")


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer() as running:
        yield running


def connection_to(server: WebServer) -> Connection:
    return Connection(split(server.url)[0])


def test_a_request_arrives_as_it_was_given_and_its_answer_is_read(server: WebServer) -> None:
    server.answer(201, b'{"ok":1}', {"X-Here": "yes"})

    with closing(connection_to(server)) as connection:
        answer = connection.exchange("PUT", "/a%20b?c=d", headers={"X-One": "1"}, body=b"text")

    assert (answer.status, answer.body, answer.headers["x-here"]) == (201, b'{"ok":1}', "yes")
    request = server.requests[0]
    assert (request.method, request.target, request.body) == ("PUT", "/a%20b?c=d", b"text")
    assert (request.headers["x-one"], request.headers["host"]) == ("1", server.url[7:])


def test_a_connection_is_kept_and_made_anew_where_the_server_closed_it(server: WebServer) -> None:
    with closing(connection_to(server)) as connection:
        connection.exchange("GET", "/1", headers={})
        connection.exchange("GET", "/2", headers={})
        server.close_connections()
        connection.exchange("GET", "/3", headers={})

    assert [request.target for request in server.requests] == ["/1", "/2", "/3"]
    assert server.connections == 2


def test_a_redirect_is_not_followed(server: WebServer) -> None:
    server.answer(302, b"", {"Location": f"{server.url}/elsewhere"})

    with closing(connection_to(server)) as connection:
        assert connection.exchange("GET", "/", headers={}).status == 302

    assert len(server.requests) == 1


def test_a_host_that_is_not_allowed_hears_nothing(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(outgoing.SETTING)

    with closing(connection_to(server)) as connection, pytest.raises(ConfigError, match="loopback"):
        connection.exchange("GET", "/", headers={})

    assert server.connections == 0


def test_an_answer_that_comes_in_drops_ends_in_time() -> None:
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        with suppress(OSError), closing(listener.accept()[0]) as client:
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while not ended.wait(0.02):
                client.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        host, port = listener.getsockname()
        with (
            closing(Connection(Origin(scheme="http", host=host, port=port))) as connection,
            pytest.raises(RetriableError, match="timed out"),
        ):
            connection.exchange("GET", "/", headers={}, within_s=0.2)
        ended.set()
        thread.join()


def test_no_more_than_the_limit_is_read_of_an_answer(server: WebServer) -> None:
    server.answer(200, b"x" * (MAX_ANSWER_BYTES + 10))

    with closing(connection_to(server)) as connection:
        answer = connection.exchange("GET", "/", headers={}, within_s=30)
        assert (len(answer.body), answer.is_cut) == (MAX_ANSWER_BYTES, True)
        # What was left of the answer is no answer to the next request.
        assert connection.exchange("GET", "/", headers={}).body == b""


@pytest.mark.parametrize("value", ["a\r\nX-Two: 2", "a\nb"])
def test_a_header_cannot_smuggle_another(server: WebServer, value: str) -> None:
    with closing(connection_to(server)) as connection, pytest.raises(ConfigError):
        connection.exchange("GET", "/", headers={"X-One": value})

    assert server.requests == []


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("ftp://host/", "neither http"),
        ("file:///etc/passwd", "neither http"),
        ("//host", "neither http"),
        ("http://", "names no host"),
        ("http://host:99999/", "not a URL"),
        ("http://host/a b", "%XX"),
        ("http://host/ä", "%XX"),
        ("http://host/\n", "%XX"),
        ("http://host/" + "x" * 9000, "characters"),
    ],
)
def test_what_is_no_url_of_the_web_is_refused(url: str, wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        split(url)


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as refused:
        split("https://user:geheim@host/")

    assert "geheim" not in str(refused.value)


def test_a_url_is_parted_into_server_and_target() -> None:
    origin, target = split("https://[2001:db8::1]:8443/a?b=c")

    assert (str(origin), target) == ("https://[2001:db8::1]:8443", "/a?b=c")
    assert split("http://Host")[0].name == "host"


@requires("openssl")
def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    made, key = certificate(tmp_path)
    speaks = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    speaks.load_cert_chain(made, key)

    with WebServer(tls=speaks) as server:
        origin, _ = split(server.url)
        with closing(Connection(origin)) as stranger, pytest.raises(ConfigError, match="trusted"):
            stranger.exchange("GET", "/", headers={})
        with closing(Connection(origin, tls=trust(made.read_text()))) as known:
            assert known.exchange("GET", "/", headers={}).status == 200
