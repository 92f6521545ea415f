"""Sends admin requests to a cluster, waits for answers, and retries reads.

Knows nothing of the content. One connection, not thread-safe.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from confluent_kafka import KafkaException

from gateway.kafka.clients import make_admin
from gateway.kafka.connection import Connection, Deadline, Reach, wait_for
from gateway.kafka.errors import KafkaFailure, from_exception

T = TypeVar("T")

# A connection that breaks during one request is rare; twice in a row is an outage.
READ_ATTEMPTS: Final = 3


class AdminCalls:
    """Every call has the connection's deadline and fails as `KafkaFailure`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._reach = Reach(connection.bootstrap)
        self.client = make_admin(connection, self._reach)

    def read(self, ask: Callable[[Deadline], T]) -> T:
        """Send a read, and retry it if the connection broke: a repeated read is harmless."""
        deadline = self.connection.deadline()
        for _ in range(READ_ATTEMPTS - 1):
            try:
                return ask(deadline)
            except KafkaFailure as failed:
                if failed.name != "BROKER_NOT_AVAILABLE" or self._reach.is_down():
                    raise
        return ask(deadline)

    def send(self, request: Callable[[], T], value: str = "") -> T:
        """Send a request; raise KafkaFailure if confluent-kafka refuses it."""
        try:
            return request()
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, value or self.connection.bootstrap) from error

    def wait(self, future: "Future[T]", deadline: Deadline, value: str) -> T:
        return wait_for(
            future, client=self.client, reach=self._reach, deadline=deadline, value=value
        )
