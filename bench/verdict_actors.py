"""Plays consumer groups with real clients: members that read, commit, fail, pause, come and go.

One loop plays all groups. A client's error is counted and played over, since several of the scripts
provoke errors.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.verdict_scripts import Habit, Protocol, Script
from gateway.kafka.admin import Admin
from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.bounds import bounds
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.groups import Groups
from gateway.kafka.values import NewTopic, Place

PRODUCER: Final[dict[str, Any]] = {
    "linger.ms": 50,
    "log_level": 0,
    "error_cb": lambda _error: None,
}
TICK_S: Final = 0.25
PADDING: Final = b"x" * 80
# The most to write or read in one turn, for example after the machine was suspended.
MAX_AT_ONCE: Final = 500
FLUSH_S: Final = 10.0
MEMBER: Final[dict[str, Any]] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "topic.metadata.refresh.interval.ms": 10_000,
    # A slow reader would be busy for minutes with what it has fetched of one partition.
    "queued.max.messages.kbytes": 16,
    "fetch.message.max.bytes": 2 * 1024,
    "fetch.queue.backoff.ms": 100,
    "log_level": 0,
    "error_cb": lambda _error: None,
}
# The consumer protocol has these on the broker.
CLASSIC: Final[dict[str, Any]] = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1_000}


class Credit:
    """Splits rates into whole records."""

    def __init__(self) -> None:
        self._left = 0.0

    def due(self, per_second: float, passed_s: float) -> int:
        self._left = min(MAX_AT_ONCE, self._left + per_second * passed_s)
        whole = int(self._left)
        self._left -= whole
        return whole


class Member:
    """One member of a group, and how far it has read each partition."""

    def __init__(self, bootstrap: str, script: Script, number: int) -> None:
        self._topic = script.group
        self._credit = Credit()
        self._next: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._committed_s = 0.0
        self._is_paused = False
        own = {
            "bootstrap.servers": bootstrap,
            "group.id": script.group,
            "group.protocol": script.protocol.value,
            "client.id": f"{script.group}-{number}",
        }
        timeouts = CLASSIC if script.protocol is Protocol.CLASSIC else {}
        self._client = Consumer({**MEMBER, **timeouts, **own})
        self._client.subscribe([script.group])

    def turn(self, habit: Habit, at_s: float, passed_s: float) -> None:
        self._pause(habit.is_paused)
        self._read(habit, self._credit.due(habit.read, passed_s))
        if habit.commit_s is not None and at_s - self._committed_s >= habit.commit_s:
            self._committed_s = at_s
            self._commit(habit)

    def close(self) -> None:
        self._client.close()

    def _pause(self, is_paused: bool) -> None:
        if is_paused:
            # Also what was assigned since.
            self._client.pause(self._client.assignment())
        elif self._is_paused:
            self._client.resume(self._client.assignment())
        self._is_paused = is_paused

    def _read(self, habit: Habit, due: int) -> None:
        failed: dict[int, int] = {}
        # Without a poll the group would remove the member.
        for message in self._client.consume(max(1, due), 0):
            partition, offset = message.partition(), message.offset()
            if message.error() is not None or partition is None or offset is None:
                continue
            if partition in habit.failing:
                failed.setdefault(partition, offset)
            else:
                self._next[partition] = offset + 1
        for partition, offset in failed.items():
            self._next[partition] = offset
            self._client.seek(TopicPartition(self._topic, partition, offset))

    def _commit(self, habit: Habit) -> None:
        """Commit what was read since, and a failing partition's offset once more."""
        offsets = {
            place.partition: self._next[place.partition]
            for place in self._client.assignment()
            if place.partition in self._next and place.partition not in habit.uncommitted
        }
        changed = [
            TopicPartition(self._topic, partition, offset)
            for partition, offset in offsets.items()
            if partition in habit.failing or self._committed.get(partition) != offset
        ]
        if changed:
            self._client.commit(offsets=changed, asynchronous=False)
            self._committed |= offsets


class Troupe:
    """One group with its topic and its producer."""

    def __init__(self, bootstrap: str, script: Script) -> None:
        self._bootstrap = bootstrap
        self._script = script
        # Only while there is a topic: a producer that asks for one makes it again.
        self._producer: Producer | None = None
        self._credit = Credit()
        self._members: dict[int, Member] = {}
        self._written = 0
        self._reset_s: float | None = None
        connection = Connection(bootstrap=bootstrap, client_id=f"{script.group}-operator")
        self._admin = Admin(connection)
        self._groups = Groups(connection)
        self._calls = AdminCalls(connection)

    def turn(self, share: float, at_s: float, passed_s: float) -> None:
        habit = self._script.phase_at(share).habit
        self._have_topic(habit.has_topic)
        self._write(self._credit.due(habit.arrive, passed_s))
        self._have_members(habit, at_s)
        for member in self._members.values():
            member.turn(habit, at_s, passed_s)
        self._reset(habit, at_s)

    def close(self) -> None:
        while self._members:
            self._members.popitem()[1].close()
        self._write_no_more()

    def _have_topic(self, is_wanted: bool) -> None:
        name = self._script.group
        if is_wanted and self._producer is None:
            self._admin.create([NewTopic(name=name, partitions=self._script.partitions)])
            self._producer = Producer({**PRODUCER, "bootstrap.servers": self._bootstrap})
        elif not is_wanted and self._producer is not None:
            self._write_no_more()
            self._admin.delete([name])

    def _write(self, count: int) -> None:
        if self._producer is None:
            return
        for _ in range(count):
            partition = self._written % self._script.partitions
            self._producer.produce(self._script.group, PADDING, partition=partition)
            self._written += 1
        self._producer.poll(0)

    def _write_no_more(self) -> None:
        if self._producer is not None:
            self._producer.flush(FLUSH_S)
            self._producer = None

    def _have_members(self, habit: Habit, at_s: float) -> None:
        wanted = {number for number in range(habit.members) if is_present(habit, number, at_s)}
        for number in set(self._members) - wanted:
            self._members.pop(number).close()
        for number in wanted - set(self._members):
            self._members[number] = Member(self._bootstrap, self._script, number)

    def _reset(self, habit: Habit, at_s: float) -> None:
        """Set the offsets of the group, as an operator does while it has no members."""
        if habit.reset_s is None:
            return
        if self._reset_s is not None and at_s - self._reset_s < habit.reset_s:
            return
        name = self._script.group
        places = [Place(topic=name, partition=number) for number in range(self._script.partitions)]
        back = habit.reset_back
        held = bounds(self._calls, places)
        if len(held) < len(places):
            return  # a new topic, whose leaders do not answer yet
        offsets = {
            place: start if back is None else max(start, end - back // len(places))
            for place, (start, end) in held.items()
        }
        self._groups.commit(name, offsets)
        self._reset_s = at_s


def is_present(habit: Habit, number: int, at_s: float) -> bool:
    """Tell whether a member is there; the second one comes half a turn after the first."""
    if habit.turn_s is None:
        return True
    return int(at_s / habit.turn_s + number / 2) % 2 == 0


def play(
    bootstrap: str,
    scripts: Sequence[Script],
    *,
    share_at: Callable[[float], float],
    is_over: Callable[[], bool],
) -> Counter[str]:
    """Play all groups until it is over; return the errors that clients had, by their text."""
    troupes = [Troupe(bootstrap, script) for script in scripts]
    errors: Counter[str] = Counter()
    last_s = time.monotonic()
    try:
        while not is_over():
            time.sleep(TICK_S)
            now_s = time.monotonic()
            for troupe in troupes:
                try:
                    troupe.turn(share_at(now_s), now_s, now_s - last_s)
                except (KafkaException, KafkaFailure) as error:
                    errors[str(error)] += 1
            last_s = now_s
    finally:
        for troupe in troupes:
            with suppress(KafkaException):
                troupe.close()
    return errors
