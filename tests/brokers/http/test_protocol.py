"""The client's side of HTTP/1.1, fed byte by byte and with responses that break off."""

import pytest

from brokers.http.protocol import MAX_HEAD_BYTES, ClientProtocol, ConnectionDropped, NoResponse


def asked(**headers: str) -> ClientProtocol:
    protocol = ClientProtocol("host:1")
    protocol.begin("GET", "/", headers, None)
    return protocol


def test_request_names_host_and_length() -> None:
    sent = ClientProtocol("host:1").begin("PUT", "/a?b=c", {"X": " caf\xe9\u20ac "}, b"body")

    assert sent == (
        b"PUT /a?b=c HTTP/1.1\r\nHost: host:1\r\nAccept-Encoding: identity\r\n"
        b"X: caf\xe9?\r\nContent-Length: 4\r\n\r\nbody"
    )


def test_response_is_read_as_its_bytes_arrive() -> None:
    protocol = asked()
    whole = (
        b"HTTP/1.1 103 Early Hints\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: a\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    )
    head, body = None, b""

    for byte in whole:
        protocol.receive(bytes([byte]))
        if head is None:
            head = protocol.read_head()
        else:
            body += protocol.read_piece() or b""

    assert head is not None
    assert (head.status, head.headers["x"], body) == (200, "a", b"abc")
    assert protocol.is_reusable


def test_request_may_end_after_its_response() -> None:
    protocol = ClientProtocol("host")
    sent = protocol.begin("POST", "/", {}, b"ab", is_open=True)
    protocol.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")

    assert protocol.read_head() is not None
    assert (protocol.read_piece(), protocol.read_piece()) == (b"x", b"")
    assert sent.endswith(b"\r\n\r\n2\r\nab\r\n")
    assert protocol.end() == b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("received", "error"),
    [
        (b"", ConnectionDropped),
        (b"HTTP/1.1 200", NoResponse),
        (b"SSH-2.0\r\n\r\n", NoResponse),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES, NoResponse),
    ],
)
def test_response_without_whole_head_is_an_error(received: bytes, error: type[NoResponse]) -> None:
    protocol = asked()

    with pytest.raises(NoResponse) as raised:
        read_to_end(protocol, received)

    assert type(raised.value) is error


def read_to_end(protocol: ClientProtocol, received: bytes) -> None:
    for data in (received, b""):
        protocol.receive(data)
        protocol.read_head()


def test_body_that_breaks_off_is_an_error() -> None:
    protocol = asked()
    protocol.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")

    assert protocol.read_head() is not None
    assert protocol.read_piece() == b"abc"
    protocol.receive(b"")
    with pytest.raises(NoResponse, match="received 3 bytes, expected 9"):
        protocol.read_piece()
