"""Connects to a cluster and detects that it is unreachable, for all of our clients.

librdkafka retries forever and reports that on stderr only. Its messages are collected here, so that
a cluster that is down fails within a second instead of at the deadline.
"""

import re
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

from gateway.kafka.errors import KafkaFailure, failure, from_exception

T = TypeVar("T")

DEFAULT_TIMEOUT_S: Final = 15.0
# How often a wait checks whether the cluster has become unreachable.
LOOK_S: Final = 0.05
# A name may have several addresses, of which the first may refuse and the next one answer: the
# cluster counts as down after failing for this long.
PATIENCE_S: Final = 1.0
# librdkafka says "host:9092/1: what happened (after 3ms in state CONNECT)".
REASON: Final = re.compile(
    r"^\S+: (?:Connect to \S+ failed: |Receive failed: )?(?P<what>.*?)(?: \(after [^()]*\))?$"
)
# "HTTP", read as the length of an answer.
SPEAKS_HTTP: Final = f"Invalid response size {int.from_bytes(b'HTTP')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A cluster's address. `properties` are librdkafka's own and win; they may hold secrets."""

    bootstrap: str
    timeout_s: float = DEFAULT_TIMEOUT_S
    client_id: str = "samsa"
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    # The common end of all calls, for callers with a deadline of their own.
    until: "Deadline | None" = field(default=None, repr=False, compare=False)

    def deadline(self) -> "Deadline":
        """Return the deadline of one call, at most that of all calls together."""
        left = self.timeout_s if self.until is None else self.until.left()
        return Deadline(min(self.timeout_s, left))


class Deadline:
    """A time limit that several steps share."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left; never 0, which librdkafka would take for no limit."""
        return max(self._end - time.monotonic(), 0.001)

    def is_over(self) -> bool:
        return time.monotonic() >= self._end


class Reach:
    """Tracks whether the cluster can be reached. Not thread-safe, like its client."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._reason = ""
        self._is_refused = False
        self._down_since: float | None = None

    def note(self, error: KafkaError) -> None:
        """Note an error of librdkafka, which reports it while the client is polled."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - a documented constant
            # A later disconnect message would hide the cause.
            if SPEAKS_HTTP not in self._reason:
                self._reason = error.str() or ""
            self._is_refused = error.code() == KafkaError._AUTHENTICATION  # noqa: SLF001 - as above
        elif self._down_since is None:
            self._down_since = time.monotonic()

    def heard(self) -> None:
        """Note that the cluster has answered."""
        self._down_since = None

    def down_seconds(self) -> float:
        return 0.0 if self._down_since is None else time.monotonic() - self._down_since

    def is_down(self) -> bool:
        return self.down_seconds() >= PATIENCE_S

    def failure(self) -> KafkaFailure:
        """Return the failure of an unreachable cluster, with the last known reason."""
        if SPEAKS_HTTP in self._reason:
            words = "the server there speaks HTTP, not Kafka"
        elif found := REASON.match(self._reason):
            words = f"no broker answers there ({found['what'][:1].lower()}{found['what'][1:]})"
        else:
            words = ""
        name = "SASL_AUTHENTICATION_FAILED" if self._is_refused else "BROKER_NOT_AVAILABLE"
        return failure(name, self._bootstrap, words)


def address_of(host: str, port: int) -> str:
    """Return the address of a broker as `bootstrap` has it; IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Polled(Protocol):
    def poll(self, timeout: float = ...) -> object: ...


def wait_for(
    future: "Future[T]", *, client: Polled, reach: Reach, deadline: Deadline, value: str
) -> T:
    """Wait for an answer until it arrives, the cluster is unreachable, or time is up."""
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
