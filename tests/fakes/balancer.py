"""A balancer that is not sticky: each connection goes to the next server that takes it."""

import itertools
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer

PIECE_BYTES = 65_536
CONNECT_S = 20.0

Address = tuple[str, int]


class Balancer(ThreadingTCPServer):
    """`served` counts connections by the server that took them."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, servers: Sequence[Address]) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.served: dict[Address, int] = dict.fromkeys(servers, 0)
        self._turns = itertools.cycle(servers)
        self._lock = threading.Lock()

    @property
    def address(self) -> Address:
        host, port = self.server_address[:2]
        return str(host), int(port)

    def connected(self) -> socket.socket:
        """Connect to the next server; one that is not there is passed over."""
        for _ in self.served:
            with self._lock:
                server = next(self._turns)
            with suppress(OSError):
                found = socket.create_connection(server, timeout=CONNECT_S)
                found.settimeout(None)
                with self._lock:
                    self.served[server] += 1
                return found
        raise ConnectionRefusedError("none of the servers is there")


class Passing(BaseRequestHandler):
    """One connection, both ways."""

    server: Balancer

    def handle(self) -> None:
        with self.server.connected() as server:
            back = threading.Thread(target=pump, args=(server, self.request))
            back.start()
            pump(self.request, server)
            back.join()


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE_BYTES):
            target.sendall(piece)
    # What still comes the other way goes on.
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def balancing(servers: Sequence[Address]) -> Iterator[Balancer]:
    with Balancer(servers) as balancer:
        thread = threading.Thread(target=balancer.serve_forever)
        thread.start()
        try:
            yield balancer
        finally:
            balancer.shutdown()
            thread.join()
