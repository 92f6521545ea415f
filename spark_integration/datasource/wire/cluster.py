"""A client of the whole cluster: routes requests to leaders, looks up offsets, and retries.

It knows topics and partitions, but not the content of batches.
"""

import functools
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from spark_integration.datasource.wire import messages
from spark_integration.datasource.wire.connection import Connection
from spark_integration.datasource.wire.errors import (
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerError,
    Unreachable,
    check,
)
from spark_integration.datasource.wire.messages import (
    Address,
    Found,
    Metadata,
    Produced,
    Producer,
    TopicFacts,
    TopicPartition,
)
from spark_integration.datasource.wire.settings import Settings

T = TypeVar("T")

# The backoff between attempts: doubles each time, with jitter so that executors do not retry all at
# once.
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
# A broker restarts within seconds, a machine within a minute.
PATIENCE_SECONDS: Final = 60.0
# How long an unknown topic may be one that was just created.
NEW_TOPIC_SECONDS: Final = 5.0
# Topics of one metadata request: 10,000 names of 249 letters would be 2.5 MB.
MAX_NAMES: Final = 1000
CREATION_SECONDS: Final = 30


class Cluster:
    """A client of one cluster, for one thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        new_topic_seconds: float = NEW_TOPIC_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._patience_seconds = patience_seconds
        self._new_topic_seconds = new_topic_seconds
        self._clock = clock
        self._pause = pause
        self._brokers: dict[int, Address] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._connections: dict[Address, Connection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def metadata(self, topics: Iterable[str] | None) -> Metadata:
        """Return the metadata of some topics, or with None of all; missing ones have an error."""
        if topics is None:
            return self.retried(lambda: self._refresh(None), "Metadata")
        names = sorted(set(topics))
        known: dict[str, TopicFacts] = {}
        for start in range(0, len(names), MAX_NAMES):
            part = names[start : start + MAX_NAMES]
            known |= self.retried(functools.partial(self._refresh, part), "Metadata").topics
        return Metadata(brokers=dict(self._brokers), topics=known)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation: int = messages.READ_UNCOMMITTED
    ) -> dict[TopicPartition, int]:
        """Return offsets by time, in ms, or by end of the log; -1 if no record is that new."""
        found: dict[TopicPartition, int] = {}
        left = dict(wanted)

        def ask_for_rest() -> dict[TopicPartition, int]:
            for node, part in self._by_leader(left).items():
                body = messages.list_offsets_request(
                    {where: wanted[where] for where in part}, isolation=isolation
                )
                reader = self.connection_to(node).ask(messages.LIST_OFFSETS, body)
                for where, answer in messages.read_list_offsets(reader).items():
                    self._take(where, answer, found, left)
            if left:
                raise Unreachable(f"ListOffsets: no response for {next(iter(left))}")
            return found

        return self.retried(ask_for_rest, "ListOffsets")

    def produce(
        self, batches: Mapping[TopicPartition, bytes], *, timeout_ms: int = 30_000
    ) -> dict[TopicPartition, Produced]:
        """Send one batch for each partition, once, to their common leader.

        The caller decides on retries, since it numbered the batches; errors are in the response.
        """
        leaders = {self.leader_of(where) for where in batches}
        assert len(leaders) == 1, f"batches for {len(leaders)} leaders in one request"
        connection = self.connection_to(leaders.pop())
        body = messages.produce_request(batches, timeout_ms=timeout_ms)
        reader = connection.ask(messages.PRODUCE, body, more_seconds=timeout_ms / 1000)
        return messages.read_produce(reader)

    def init_producer(self) -> Producer:
        """Return a new idempotent producer id."""

        def ask() -> Producer:
            body = messages.init_producer_id_request()
            return messages.read_init_producer_id(
                self.any_connection().ask(messages.INIT_PRODUCER_ID, body)
            )

        return self.retried(ask, "InitProducerId")

    def create_topic(self, name: str, *, partitions: int, configs: Mapping[str, str]) -> None:
        """Create a topic, unless it exists."""

        def ask() -> None:
            body = messages.create_topic_request(
                name, partitions=partitions, configs=configs, timeout_ms=CREATION_SECONDS * 1000
            )
            reader = self.any_connection().ask(
                messages.CREATE_TOPICS, body, more_seconds=CREATION_SECONDS
            )
            for _name, code, said in messages.read_create_topics(reader):
                if code != TOPIC_ALREADY_EXISTS:
                    check(code, f"CreateTopics {name}", said)

        self.retried(ask, f"CreateTopics {name}")

    def leader_of(self, where: TopicPartition) -> int:
        """Return the leader of a partition, from the cache or from metadata."""
        if where not in self._leaders:
            topic = self._refresh([where.topic]).topics.get(where.topic)
            check(UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code, str(where))
            if where not in self._leaders:
                check(UNKNOWN_TOPIC_OR_PARTITION, str(where))
        leader = self._leaders[where]
        if leader not in self._brokers:
            self.forget_leader(where)
            raise Unreachable(f"{where} has no leader")
        return leader

    def has_leader(self, where: TopicPartition) -> bool:
        """Return whether the leader of a partition is cached."""
        return self._leaders.get(where) in self._brokers

    def forget_leader(self, where: TopicPartition) -> None:
        self._leaders.pop(where, None)

    def connection_to(self, node: int) -> Connection:
        """Return a connection to a broker without a response in flight."""
        return self._connection_at(self._brokers[node])

    def any_connection(self) -> Connection:
        """Return a connection to the first broker that answers."""
        places = [*self._connections, *self._brokers.values(), *self._settings.bootstrap]
        complaints: dict[Address, str] = {}
        for place in dict.fromkeys(places):
            try:
                return self._connection_at(place)
            except Unreachable as error:
                complaints[place] = str(error)
        raise Unreachable("no broker answers: " + "; ".join(complaints.values()))

    def retried(self, step: Callable[[], T], what: str, *, seconds: float | None = None) -> T:
        """Retry until a call succeeds, fails for good, or takes too long."""
        started = self._clock()
        patience = self._patience_seconds if seconds is None else seconds
        pause = FIRST_PAUSE
        while True:
            try:
                return step()
            except (Unreachable, BrokerError) as error:
                waited = self._clock() - started
                if not self.may_pass(error, waited):
                    raise
                if waited + pause > patience:
                    raise Unreachable(f"{what}: gave up after {waited:.0f} s: {error}") from error
                self._leaders.clear()
            self._pause(pause * random.uniform(0.5, 1))  # noqa: S311 (no secret)
            pause = min(2 * pause, LONGEST_PAUSE)

    def may_pass(self, error: Unreachable | BrokerError, waited: float) -> bool:
        """Return whether to retry."""
        if isinstance(error, Unreachable):
            return True
        if error.code in UNKNOWN_TOPIC:
            return waited < self._new_topic_seconds
        return error.is_passing

    def _refresh(self, topics: Sequence[str] | None) -> Metadata:
        body = messages.metadata_request(topics)
        told = messages.read_metadata(self.any_connection().ask(messages.METADATA, body))
        if not told.brokers:
            raise Unreachable("the cluster reports no live broker")
        self._brokers = dict(told.brokers)
        for topic in told.topics.values():
            for partition, leader in topic.leaders.items():
                self._leaders[TopicPartition(topic.name, partition)] = leader
        return told

    def _by_leader(self, wanted: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        unknown = {where.topic for where in wanted if where not in self._leaders}
        if unknown:
            self.metadata(unknown)
        parts: dict[int, list[TopicPartition]] = {}
        for where in wanted:
            parts.setdefault(self.leader_of(where), []).append(where)
        return parts

    def _take(
        self,
        where: TopicPartition,
        answer: Found,
        found: dict[TopicPartition, int],
        left: dict[TopicPartition, int],
    ) -> None:
        check(answer.error_code, f"ListOffsets {where}")
        if left.pop(where, None) is not None:
            found[where] = answer.offset

    def _connection_at(self, place: Address) -> Connection:
        held = self._connections.get(place)
        if held is not None and held.is_idle:
            return held
        if held is not None:
            held.close()
            del self._connections[place]
        made = self._connections[place] = Connection(place, self._settings)
        return made
