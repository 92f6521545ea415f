"""Lends a few admin clients to the many threads that serve calls.

A client of librdkafka has threads and sockets of its own, so a worker has a bounded number of them.
A client whose call got no answer is not lent again: its connection may be broken.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from threading import Condition
from typing import Final

from gateway.kafka.acls import Acls
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.groups import Groups

# Views wait in some tens of threads per process; each client has three threads, takes a megabyte,
# and answers a request in milliseconds.
MAX_CLIENTS: Final = 4
# The time limit of one call: an earlier borrower returns its client by then.
WAIT_S: Final = 15.0
# After these, the connection is in doubt; all other failures are answers of a broker.
DOUBTFUL: Final = frozenset({"BROKER_NOT_AVAILABLE", "REQUEST_TIMED_OUT"})


class Clients:
    """The admin clients of one borrower. Not thread-safe."""

    def __init__(self, connection: Connection, *, client_id: str = "") -> None:
        self.client_id = client_id
        self._connection = connection

    @cached_property
    def admin(self) -> Admin:
        return Admin(self._connection)

    @cached_property
    def groups(self) -> Groups:
        return Groups(self._connection)

    @cached_property
    def acls(self) -> Acls:
        return Acls(self._connection)


class Pool:
    """Thread-safe; `drain` and `close` are called by the worker."""

    def __init__(
        self,
        connection: Callable[[], Connection],
        *,
        max_clients: int = MAX_CLIENTS,
        wait_s: float = WAIT_S,
    ) -> None:
        self._connection = connection
        self._max_clients = max_clients
        self._wait_s = wait_s
        self._free: list[Clients] = []
        self._lent = 0
        self._condition = Condition()

    @contextmanager
    def borrowed(self, client_id: str = "") -> Iterator[Clients]:
        """Lend clients for a block; wait while all are lent, until the deadline.

        `client_id` is their client id at brokers; empty for the connection's own.
        """
        clients = self._take(client_id)
        # Any other error, such as a missing right, is no fault of the connection.
        is_sound = True
        try:
            if clients is None:
                clients = self._made(client_id)
            yield clients
        except KafkaFailure as failed:
            is_sound = failed.name not in DOUBTFUL
            raise
        finally:
            with self._condition:
                self._lent -= 1
                if is_sound and clients is not None:
                    self._free.append(clients)
                self._condition.notify()

    def drain(self) -> None:
        """Do nothing: running calls are short, and new ones use free clients."""

    async def close(self) -> None:
        """Close all clients that are not lent."""
        with self._condition:
            self._free.clear()

    def _made(self, client_id: str) -> Clients:
        connection = self._connection()
        named = replace(connection, client_id=client_id) if client_id else connection
        return Clients(named, client_id=client_id)

    def _take(self, client_id: str) -> Clients | None:
        """Wait for a client; None if the borrower has to create its own."""
        deadline = Deadline(self._wait_s)
        # Release it outside of the lock: that ends its threads.
        dropped: Clients | None = None
        with self._condition:
            while self._lent >= self._max_clients:
                if deadline.is_over():
                    raise failure(
                        "REQUEST_TIMED_OUT",
                        "this gateway",
                        f"all of its {self._max_clients} clients were busy for {self._wait_s:g} s",
                    )
                self._condition.wait(deadline.left())
            self._lent += 1
            for place, clients in enumerate(reversed(self._free), 1):
                if clients.client_id == client_id:
                    return self._free.pop(-place)
            if self._lent + len(self._free) > self._max_clients:
                # The least recently used one.
                dropped = self._free.pop(0)
        del dropped
        return None
