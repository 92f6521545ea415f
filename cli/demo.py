"""`./samsa demo`: fills a cluster with activity, for a first look at the console.

Creates topics, producers with changing rates, and groups, of which some keep up, some fall behind
and catch up, and some are in trouble. All of it uses Kafka's protocol like any client, in one loop
without threads of its own.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import click

from cli.bootstrap import reaches_cluster
from cli.demo_scenes import AUDIENCES, SCENES, Audience, Habit, Scene
from cli.output import say
from gateway.kafka.admin import Admin
from gateway.kafka.clients import SLOW_MEMBER_READS
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, Kind, failure
from gateway.kafka.groups import Groups
from gateway.kafka.member import Member, Reset, Subscription
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import GroupState, NewTopic, Position, PositionKind

TICK_S: Final = 0.2
COMMIT_S: Final = 1.0
# A restarted broker answers within the first; a longer outage of the cluster is reported.
AGAIN_S: Final = 2.0
GIVE_UP_S: Final = 120.0
# The most to write or read in one tick, for example after the machine was suspended.
MAX_AT_ONCE: Final = 2_000


class Share:
    """Splits a rate into whole records: each tick leaves its fraction to the next."""

    def __init__(self, rate: Callable[[float], float]) -> None:
        self._rate = rate
        self._left = 0.0

    def due(self, at_s: float, passed_s: float) -> int:
        self._left = min(MAX_AT_ONCE, self._left + self._rate(at_s) * passed_s)
        whole = int(self._left)
        self._left -= whole
        return whole


class Writer:
    """The producer of one topic."""

    def __init__(self, connection: Connection, scene: Scene, chance: Random) -> None:
        self._scene = scene
        self._chance = chance
        self._share = Share(scene.rate)
        self._producer = TopicWriter(replace(connection, client_id=scene.writer), scene.topic)
        self.written = 0

    def turn(self, at_s: float, passed_s: float) -> None:
        for _ in range(self._share.due(at_s, passed_s)):
            self._producer.send(self._scene.record(self._chance, self.written))
            self.written += 1

    def close(self) -> None:
        self._producer.flush()


class Reading:
    """The members of one group."""

    def __init__(self, connection: Connection, audience: Audience) -> None:
        self._audience = audience
        self._members: list[tuple[Member, Share]] = []
        name = audience.group.rpartition(".")[2]
        for number in range(audience.members):
            own = replace(connection, client_id=f"{name}-{number + 1}")
            member = Member(
                own,
                audience.group,
                reset=Reset.EARLIEST,
                commits_itself=False,
                reads=SLOW_MEMBER_READS,
            )
            member.subscribe(Subscription(topics=tuple(audience.topics)))
            self._members.append((member, Share(audience.rate)))
        self._committed_s = 0.0
        self._turned_s = 0.0
        self.read = 0

    def turn(self, at_s: float, passed_s: float) -> None:
        for member, share in self._members:
            # A poll without records would not keep the membership.
            records = member.read(max(1, share.due(at_s, passed_s)))
            member.delivered(records)
            self.read += len(records)
        if at_s - self._committed_s >= COMMIT_S:
            self._committed_s = at_s
            self._commit(at_s)

    def close(self) -> None:
        for member, _ in self._members:
            member.close()
        self._members.clear()

    def _commit(self, at_s: float) -> None:
        is_turn = at_s - self._turned_s >= self._audience.turn_s
        match self._audience.habit:
            case Habit.STICKS:
                self._each(commit_start)
            case Habit.LEAVES if is_turn:
                self.close()
            case Habit.REWINDS if is_turn:
                self._turned_s = at_s
                self._each(rewind)
            case _:
                self._each(commit)

    def _each(self, act: Callable[[Member], None]) -> None:
        for member, _ in self._members:
            act(member)


def commit(member: Member) -> None:
    """Commit the positions; do not wait for the answer."""
    member.commit(waits=False)


def commit_start(member: Member) -> None:
    """Commit the first offset of the assigned partitions, whatever was read."""
    member.commit(dict.fromkeys(member.assignment(), 0), waits=False)


def rewind(member: Member) -> None:
    """Seek to the first record of the assigned partitions, and commit that."""
    commit_start(member)
    member.seek(dict.fromkeys(member.assignment(), Position(kind=PositionKind.BEGINNING)))


@dataclass(slots=True, kw_only=True)
class Play:
    """Everything that the demo does while the cluster is available."""

    writers: Sequence[Writer]
    readings: Sequence[Reading]

    def turn(self, at_s: float, passed_s: float) -> None:
        for writer in self.writers:
            writer.turn(at_s, passed_s)
        for reading in self.readings:
            reading.turn(at_s, passed_s)


@click.command(epilog="Example: ./samsa demo --seconds 60")
@click.option(
    "--clear", "is_clearing", is_flag=True, help="Delete the topics and groups of the demo."
)
@click.option(
    "--seconds", type=click.IntRange(min=1), help="Stop after this time. Default: run until Ctrl-C."
)
@reaches_cluster
def demo(*, connection: Connection, is_clearing: bool, seconds: int | None) -> None:
    """Create demo topics, and run producers and consumer groups on them."""
    if is_clearing:
        clear(connection)
        return
    made = create_topics(Admin(connection))
    say(f"{made} topics created, {len(SCENES) - made} existed. Ctrl-C ends the demo.")
    with suppress(KeyboardInterrupt):
        run(connection, seconds)
    say("The demo has ended; `./samsa demo --clear` deletes its topics and groups.")


def create_topics(admin: Admin) -> int:
    """Create missing topics; return their number."""
    existing = {topic.name for topic in admin.topics()}
    missing = [
        NewTopic(name=scene.topic, partitions=scene.partitions, configs=scene.configs)
        for scene in SCENES
        if scene.topic not in existing
    ]
    if missing:
        admin.create(missing)
    return len(missing)


def run(connection: Connection, seconds: int | None) -> None:
    """Write and read until the time is up, across restarts of brokers."""
    began = time.monotonic()
    down_since: float | None = None
    while seconds is None or time.monotonic() - began < seconds:
        try:
            # Clients accept records and read nothing for minutes after the last broker has gone, so
            # ask before making them: a home that is down for good ends the demo.
            Admin(connection).topics()
            down_since = None
            with playing(connection) as play:
                for now_s, passed_s in ticks(began, seconds):
                    play.turn(now_s, passed_s)
        except KafkaFailure as failed:
            now = time.monotonic()
            down_since = down_since or now
            if failed.kind is Kind.USAGE or now - down_since > GIVE_UP_S:
                raise
            say(f"{failed}; retrying in {AGAIN_S:g} s")
            time.sleep(AGAIN_S)


def ticks(began: float, seconds: int | None) -> Iterator[tuple[float, float]]:
    """Yield the seconds since the start, and those since the last tick."""
    last = time.monotonic()
    while True:
        time.sleep(TICK_S)
        now = time.monotonic()
        if seconds is not None and now - began >= seconds:
            return
        yield now - began, now - last
        last = now


@contextmanager
def playing(connection: Connection) -> Iterator[Play]:
    """Provide writers and members that leave cleanly at the end, even after an error."""
    with ExitStack() as stack:
        readings = []
        for audience in AUDIENCES:
            reading = Reading(connection, audience)
            stack.callback(reading.close)
            readings.append(reading)
        chance = Random()  # noqa: S311 - nothing here is secret
        writers = [Writer(connection, scene, chance) for scene in SCENES]
        for writer in writers:
            stack.callback(quietly, writer.close)
        yield Play(writers=writers, readings=readings)


def quietly(close: Callable[[], None]) -> None:
    """Close a client that may have failed already, which was reported."""
    with suppress(KafkaFailure):
        close()


def clear(connection: Connection) -> None:
    """Delete the demo's groups and topics, and nothing else."""
    groups, admin = Groups(connection), Admin(connection)
    ours = {audience.group for audience in AUDIENCES}
    found = [group for group in groups.summaries() if group.name in ours]
    if busy := [group.name for group in found if group.state is not GroupState.EMPTY]:
        raise failure(
            "NON_EMPTY_GROUP",
            f"group {busy[0]}",
            "a demo still runs here: end it with Ctrl-C, then clear",
        )
    if found:
        groups.delete([group.name for group in found])
    topics = {scene.topic for scene in SCENES} & {topic.name for topic in admin.topics()}
    if topics:
        admin.delete(sorted(topics))
    say(f"{_count(len(topics), 'topic')} and {_count(len(found), 'group')} deleted.")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
