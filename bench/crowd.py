"""Many connections that do nothing: each has asked for the versions once, as any client does first.

They come from many loopback addresses in turns, since one address has fewer ports than a machine
has clients, and brokers count connections by address.
"""

import resource
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bench.blaster import API_VERSIONS, framed
from brokers.server.descriptors import for_clients, raise_limit

ADDRESSES: Final = 50
ANSWER_SECONDS: Final = 30.0
# Files, pipes and the connections of whoever measures.
SPARE_DESCRIPTORS: Final = 200
RECEIVE_BYTES: Final = 65_536


def possible(wanted: int) -> int:
    """How many connections this process may hold and a broker of this machine will take."""
    raise_limit()
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ours = wanted if hard == resource.RLIM_INFINITY else hard - SPARE_DESCRIPTORS
    # The broker's own sum, made here under the same limit: log files have their share of it.
    return max(1, min(wanted, ours, for_clients() - SPARE_DESCRIPTORS))


@contextmanager
def crowd(host: str, port: int, count: int) -> Iterator[list[socket.socket]]:
    """That many idle connections until the block ends; a failure if any has been closed by then."""
    request = bytes(framed(API_VERSIONS, 0, []))
    links: list[socket.socket] = []
    try:
        for number in range(count):
            links.append(_connected(host, port, number))
            _ask(links[-1], request)
        yield links
        assert not closed(links), f"{closed(links)} of {count} idle connections were closed"
    finally:
        for link in links:
            link.close()


def closed(links: list[socket.socket]) -> int:
    """On how many of the connections there is news, which can only be their end."""
    poll = select.poll()
    for link in links:
        poll.register(link, select.POLLIN)
    return len(poll.poll(0))


def _connected(host: str, port: int, number: int) -> socket.socket:
    source = f"127.0.0.{2 + number % ADDRESSES}"
    return socket.create_connection((host, port), ANSWER_SECONDS, source_address=(source, 0))


def _ask(link: socket.socket, request: bytes) -> None:
    """One request with its whole answer, so that the connection is as quiet as it gets."""
    link.sendall(request)
    head = b""
    while len(head) < 4:
        head += _some(link, 4 - len(head))
    left = int.from_bytes(head, "big")
    while left:
        left -= len(_some(link, min(left, RECEIVE_BYTES)))


def _some(link: socket.socket, size: int) -> bytes:
    data = link.recv(size)
    if not data:
        raise ConnectionError("the broker closed a connection: see its log")
    return data
