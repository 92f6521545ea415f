"""How a cluster is reached, and how we learn that it is not: shared by all our clients.

librdkafka retries for ever and says so on stderr only. Here its words are collected instead, so
that a cluster that is down is an error within a second rather than a wait until the deadline.
"""

import re
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

from gateway.kafka.errors import KafkaFailure, failure, from_exception

T = TypeVar("T")

DEFAULT_TIMEOUT_S: Final = 15.0
# How long we wait before we look whether the cluster has turned out to be unreachable.
LOOK_S: Final = 0.05
# No answer of a broker is larger; what is, is not meant for us.
MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024


# A name may have several addresses, of which the first may be refused and the next one answer: the
# cluster is away when it has been so for this long.
PATIENCE_S: Final = 1.0
# librdkafka says "host:9092/1: what happened (after 3ms in state CONNECT)".
REASON: Final = re.compile(
    r"^\S+: (?:Connect to \S+ failed: |Receive failed: )?(?P<what>.*?)(?: \(after [^()]*\))?$"
)
# "HTTP", taken for the length of an answer.
SPEAKS_HTTP: Final = f"Invalid response size {int.from_bytes(b'HTTP')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where a cluster is. `properties` are librdkafka's own, and win; they may hold secrets."""

    bootstrap: str
    timeout_s: float = DEFAULT_TIMEOUT_S
    client_id: str = "samsa"
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    # When all calls together have to be over, where they serve somebody who waits.
    until: "Deadline | None" = field(default=None, repr=False, compare=False)

    def settings(self, reach: "Reach", **own: str | float | bool) -> dict[str, Any]:
        """Return what a client is made with; `own` names have `_` for `.`."""
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": self.client_id,
            "receive.message.max.bytes": MAX_ANSWER_BYTES,
            # Its log goes to stderr; what matters comes through the callback.
            "log_level": 0,
            "error_cb": reach.note,
            **{name.replace("_", "."): value for name, value in own.items()},
            **self.properties,
        }

    def deadline(self) -> "Deadline":
        """Return the end of one call, which is never behind the end of all of them."""
        left = self.timeout_s if self.until is None else self.until.left()
        return Deadline(min(self.timeout_s, left))


class Deadline:
    """So much time, for all that is left to do."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left; never 0, which librdkafka would take for no limit at all."""
        return max(self._end - time.monotonic(), 0.001)

    def is_over(self) -> bool:
        return time.monotonic() >= self._end


class Reach:
    """What is known about whether the cluster can be reached. For one thread, like its client."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._reason = ""
        self._is_refused = False
        self._down_since: float | None = None

    def note(self, error: KafkaError) -> None:
        """Take librdkafka's word; it is called while a client is polled."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - a documented constant
            # What a disconnect says after that would hide why.
            if SPEAKS_HTTP not in self._reason:
                self._reason = error.str() or ""
            self._is_refused = error.code() == KafkaError._AUTHENTICATION  # noqa: SLF001 - as above
        elif self._down_since is None:
            self._down_since = time.monotonic()

    def heard(self) -> None:
        """Something came from the cluster, so it is there."""
        self._down_since = None

    def down_seconds(self) -> float:
        return 0.0 if self._down_since is None else time.monotonic() - self._down_since

    def is_down(self) -> bool:
        return self.down_seconds() >= PATIENCE_S

    def failure(self) -> KafkaFailure:
        """Return the failure for a cluster that is not there, with the reason last heard of."""
        if SPEAKS_HTTP in self._reason:
            words = "what answers there speaks HTTP, not Kafka"
        elif found := REASON.match(self._reason):
            words = f"no broker answers there ({found['what'][:1].lower()}{found['what'][1:]})"
        else:
            words = ""
        name = "SASL_AUTHENTICATION_FAILED" if self._is_refused else "BROKER_NOT_AVAILABLE"
        return failure(name, self._bootstrap, words)


class Polled(Protocol):
    def poll(self, timeout: float = ...) -> object: ...


def wait_for(
    future: "Future[T]", *, client: Polled, reach: Reach, deadline: Deadline, value: str
) -> T:
    """Wait for an answer of the cluster: until it comes, the cluster is gone, or time is up."""
    while True:
        try:
            answer = future.result(min(LOOK_S, deadline.left()))
        except NotYet:
            client.poll(0)
            if reach.is_down():
                raise reach.failure() from None
            if deadline.is_over():
                raise failure("REQUEST_TIMED_OUT", value) from None
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, value) from error
        else:
            reach.heard()
            return answer
