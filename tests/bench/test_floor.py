"""The sink answers each request once, however its bytes arrive."""

import socket

from bench.floor import ANSWER, Sink

REQUEST = (6).to_bytes(4, "big") + b"abcdef"


def test_requests_are_answered_when_their_last_byte_has_come() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        sink = Sink(accepted)
        stream = memoryview(REQUEST * 4)
        parts = [stream[:4], stream[4:25], stream[25:30], stream[30:]]
        assert [sink.took(part) for part in parts] == [b"", ANSWER * 2, ANSWER, ANSWER]
