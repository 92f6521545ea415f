"""Consumer groups: hundreds of members until they are settled, commits, heartbeats, idle groups.

CPU is that of the broker's process, which coordinates and does nothing else; what it takes for one
request says how many a core can do, whatever clients or the disk let through in this run. Beside
the commits stands a bare loop that knows no groups: the same requests, and one `fdatasync` for all
that has come. With a peer, the same work runs against it.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.blaster import API_VERSIONS, Link, framed, keep_busy
from bench.broker_targets import Target, floor, other_broker, own_broker
from bench.children import done_by
from bench.group_clients import PATIENCE_SECONDS, Job, Seen
from bench.homes import metrics
from bench.measure import Cell, Table

TOPIC: Final = "bench-groups"
PARTITIONS: Final = 500
ROUNDS: Final = 3
DELAY: Final = "group.initial.rebalance.delay.ms"
MB: Final = 1e6

MEMBERS: Final = 500
STABLE_SECONDS: Final = 5.0
CROWD: Final = 1_000
STALL_MS: Final = 50.0
# Requests of the one who feels a stall, a second: it asks every other millisecond.
PROBE_RATE: Final = 500
PROBE_SECONDS: Final = 0.25

CONNECTIONS: Final = 64
SECONDS: Final = 4.0
# So short that those who measure wait for nothing, and long enough for all of them to come.
SHORT_DELAY_MS: Final = 300
COMMITS_A_SECOND: Final = 8_000
HEARTBEATS_A_SECOND: Final = 15_000
HEARTBEATS_CPU_MS: Final = 60.0
SYNCS: Final = 300
SYNCED_BYTES: Final = 160  # about one commit in its batch

IDLE_GROUPS: Final = 10_000
IDLE_MB: Final = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything; tests are content with little."""

    members: int = MEMBERS
    crowd: int = CROWD
    partitions: int = PARTITIONS
    connections: int = CONNECTIONS
    seconds: float = SECONDS
    rounds: int = ROUNDS
    idle_groups: int = IDLE_GROUPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What steady members do."""

    name: str
    kind: str
    groups: int
    least: int  # requests a second of a core
    cpu_ms: float | None = None  # at most, for a thousand of them
    job: Mapping[str, object] = field(default_factory=dict)

    def judged(self, cpu_us: float) -> str:
        """Whether a core does enough of them."""
        is_fast = 1e6 / cpu_us >= self.least
        return "yes" if is_fast and (self.cpu_ms is None or cpu_us <= self.cpu_ms) else "NO"


def steady_works(connections: int) -> tuple[Work, ...]:
    """Of which each is one row; the CPU of a thousand in ms is that of one in µs."""
    beats = {"least": HEARTBEATS_A_SECOND, "cpu_ms": HEARTBEATS_CPU_MS, "groups": 1}
    return (
        Work(name="heartbeat, classic", kind="heartbeat", **beats),  # type: ignore[arg-type]
        Work(name="heartbeat, consumer", kind="consumer_heartbeat", **beats),  # type: ignore[arg-type]
        Work(name="commit, one group", kind="commit", groups=1, least=COMMITS_A_SECOND),
        Work(
            name=f"commit, {connections} groups",
            kind="commit",
            groups=connections,
            least=COMMITS_A_SECOND,
        ),
    )


def run(peer: str | None = None) -> Iterator[Table]:
    size = Size()
    others = [other_broker(peer)] if peer else []
    yield joins_table(size, others)
    yield steady_table(size, others)
    yield idle_table(size)


# -- crowds --------------------------------------------------------------------------------------


def joins_table(size: Size, others: list[Target] | None = None) -> Table:
    """Each round is a group of its own, and of each figure the best one stays."""
    rows: list[tuple[Cell, ...]] = []
    with own_broker() as (ours, _seconds):
        for target in (ours, *(others or ())):
            target.make_topic(TOPIC, size.partitions)
            try:
                rows += _join_rows(target, size)
            finally:
                target.delete_topic(TOPIC)
    return Table(
        title="members until all are settled",
        columns=("what", "broker", "figure", "target", "met"),
        rows=rows,
        notes=(
            (
                f"best of {size.rounds} rounds; classic after the initial delay: all joins taken, "
                "and from the first answer to the last share"
            ),
            (
                "the loop's figure is the upper end of a bucket that doubles; a client felt the "
                "slowest of its requests, of which it made one every other millisecond"
            ),
        ),
    )


def _join_rows(target: Target, size: Size) -> Iterator[tuple[Cell, ...]]:
    classic: list[Seen] = []
    consumer: list[Seen] = []
    crowds: list[Stalls] = []
    for number in range(size.rounds):
        classic.append(seen_by(target, kind="join", members=size.members, name=f"join-{number}"))
        consumer.append(
            seen_by(target, kind="consumer_join", members=size.members, name=f"new-{number}")
        )
        with stalls(target) as felt:
            felt.seen = seen_by(
                target, kind="rejoin", members=size.crowd - 1, name=f"crowd-{number}"
            )
        crowds.append(felt)
    name, members, crowd = target.name, size.members, size.crowd
    settled = min(seen.asked_seconds + seen.settled_seconds for seen in classic)
    stable = min(seen.seconds for seen in consumer)
    calm = min(crowds, key=lambda felt: (felt.loop_ms, felt.worst_ms))
    yield _judged(f"{members} classic members, after the delay, s", name, settled, STABLE_SECONDS)
    yield _told("… the broker's CPU for all of it, s", name, min(seen.cpu for seen in classic))
    yield _judged(f"{members} consumer members, in all, s", name, stable, STABLE_SECONDS)
    yield _told("… the broker's CPU for all of it, s", name, min(seen.cpu for seen in consumer))
    yield _told(f"{crowd} classic members join again for one, s", name, calm.seen.settled_seconds)
    if target.is_ours:
        yield _judged("… the loop's largest delay, ms: below", name, calm.loop_ms, STALL_MS)
    yield _told("… the longest wait that a client felt, ms", name, calm.worst_ms)


@dataclass(slots=True)
class Stalls:
    """What somebody beside a crowd felt."""

    seen: Seen = field(default_factory=lambda: Seen(seconds=0.0, cpu=0.0))
    worst_ms: float = 0.0
    loop_ms: float = 0.0  # as the broker itself says; nothing for a peer


@contextmanager
def stalls(target: Target) -> Iterator[Stalls]:
    """Asks for the versions all the time until the block ends."""
    found = Stalls()
    is_over = threading.Event()
    before = loop_delays(target)
    worst: list[float] = []

    def ask() -> None:
        frame = framed(API_VERSIONS, 0, [])
        while not is_over.is_set():
            link = Link((target.host, target.port), iter(lambda: frame, b""))
            worst.append(keep_busy([link], PROBE_SECONDS, rate=PROBE_RATE).max_us / 1e3)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield found
    finally:
        is_over.set()
        asking.join()
    found.worst_ms = max(worst, default=0.0)
    found.loop_ms = largest_new(before, loop_delays(target))


def loop_delays(target: Target) -> dict[float, float]:
    """How many delays of the loop were at most so many ms; nothing for a peer."""
    if not target.is_ours or target.pid is None:
        return {}
    prefix = 'samsa_loop_delay_seconds_bucket{le="'
    return {
        float(name.removeprefix(prefix).removesuffix('"}')) * 1e3: count
        for name, count in metrics(target.pid).items()
        if name.startswith(prefix)
    }


def largest_new(before: Mapping[float, float], after: Mapping[float, float]) -> float:
    """The upper end of the last bucket in which there is a delay that was not there before."""
    grown = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    total = max(grown.values(), default=0.0)
    return min((bound for bound, count in grown.items() if total and count == total), default=0.0)


# -- steady members ------------------------------------------------------------------------------


def steady_table(size: Size, others: list[Target] | None = None) -> Table:
    works = steady_works(size.connections)
    found: dict[tuple[str, str], list[Seen]] = {}
    syncs: list[float] = []
    with (
        own_broker({DELAY: str(SHORT_DELAY_MS)}) as (ours, _seconds),
        floor(is_synced=True) as kernel,
    ):
        targets = [ours, *(others or ())]
        for target in targets:
            target.make_topic(TOPIC, size.partitions)
        for number in range(size.rounds):
            for work in works:
                for target in targets:
                    name = f"{work.kind}-{work.groups}-{number}"
                    seen = _steady(target, work, size, name=name)
                    found.setdefault((work.name, target.name), []).append(seen)
            bare = _steady(kernel, works[2], size, name="bare", has_floor=True)
            found.setdefault((BARE, kernel.name), []).append(bare)
            syncs.append(syncs_a_second())
        for target in targets:
            target.delete_topic(TOPIC)
    rows = [
        _steady_row(work, target.name, found[work.name, target.name])
        for target in targets
        for work in works
    ]
    rows.append(_steady_row(None, kernel.name, found[BARE, kernel.name]))
    return Table(
        title=f"{size.connections} steady members, each with one request in flight",
        columns=(
            "work",
            "broker",
            "CPU ms/1,000",
            "a second of a core",
            "seen/s",
            "p50 µs",
            "p99 µs",
            "target",
            "met",
        ),
        rows=rows,
        notes=(
            (
                f"best of {size.rounds} rounds of {size.seconds:g} s, in turns; all threads of the "
                "broker; a core that is full does what stands in the fourth column"
            ),
            (
                f"the same disk: {max(syncs):,.0f} times fdatasync a second by one bare loop, "
                "which is what a group that commits alone can have"
            ),
        ),
    )


BARE: Final = "commit, no groups"


def _steady_row(work: Work | None, broker: str, seen: list[Seen]) -> tuple[Cell, ...]:
    best = min(seen, key=_cost)
    fastest = max(seen, key=lambda one: one.requests / one.seconds)
    cost = _cost(best)
    figures = (cost, 1e6 / cost, fastest.requests / fastest.seconds, best.p50_us, best.p99_us)
    if work is None:
        return (BARE, broker, *figures, "", "")
    target = f"≥ {work.least:,}/s"
    if work.cpu_ms is not None:
        target += f", ≤ {work.cpu_ms:g} ms"
    return (work.name, broker, *figures, target, work.judged(cost))


def _cost(seen: Seen) -> float:
    """CPU µs of one request."""
    return seen.cpu / seen.requests * 1e6


def _steady(target: Target, work: Work, size: Size, *, name: str, has_floor: bool = False) -> Seen:
    return seen_by(
        target,
        kind=work.kind,
        members=size.connections,
        groups=work.groups,
        seconds=size.seconds,
        name=name,
        has_floor=has_floor,
    )


def syncs_a_second(count: int = SYNCS) -> float:
    """What the disk alone gives to one who waits for each of his writes."""
    with TemporaryDirectory(prefix="samsa-bench-") as folder:
        file = os.open(Path(folder, "file"), os.O_RDWR | os.O_CREAT)
        try:
            began = time.perf_counter()
            for number in range(count):
                os.pwrite(file, b"x" * SYNCED_BYTES, number * SYNCED_BYTES)
                os.fdatasync(file)
            return count / (time.perf_counter() - began)
        finally:
            os.close(file)


# -- idle groups ---------------------------------------------------------------------------------


def idle_table(size: Size) -> Table:
    rows = [
        _judged(
            f"{size.idle_groups:,} {'consumer' if is_consumer else 'classic'} groups, MB",
            "Samsa",
            idle_megabytes(size, is_consumer=is_consumer),
            IDLE_MB,
        )
        for is_consumer in (False, True)
    ]
    return Table(
        title="idle groups",
        columns=("what", "broker", "figure", "target", "met"),
        rows=rows,
        notes=("growth of resident memory; one member, one committed offset each",),
    )


def idle_megabytes(size: Size, *, is_consumer: bool) -> float:
    """What groups of one member and one offset add to a broker that has served some before."""
    with own_broker({DELAY: "0"}) as (broker, _seconds):
        broker.make_topic(TOPIC, 1)
        return grown_megabytes(broker, size, is_consumer=is_consumer)


def grown_megabytes(broker: Target, size: Size, *, is_consumer: bool) -> float:
    """The same of a broker that has the topic already."""
    kind = "new" if is_consumer else "classic"
    job = {"kind": "idle", "members": size.connections, "is_consumer": is_consumer}
    seen_by(broker, **job, groups=size.connections, name=f"warm-{kind}")
    before = broker.rss_mib()
    seen_by(broker, **job, groups=size.idle_groups, name=f"idle-{kind}")
    return (broker.rss_mib() - before) * 2**20 / MB


def seen_by(target: Target, **job: object) -> Seen:
    """What a child saw that does the job."""
    made = Job(host=target.host, port=target.port, pid=target.pid, topic=TOPIC, **job)  # type: ignore[arg-type]
    seconds = made.seconds + PATIENCE_SECONDS
    return Seen(**done_by("bench.group_clients", asdict(made), seconds=seconds))


def _judged(what: str, broker: str, figure: float, target: float) -> tuple[Cell, ...]:
    return (what, broker, figure, f"≤ {target:g}", "yes" if figure <= target else "NO")


def _told(what: str, broker: str, figure: float) -> tuple[Cell, ...]:
    return (what, broker, figure, "", "")
