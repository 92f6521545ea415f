"""A whole broker over its socket: produce, fetch, latency, connections; next to the kernel alone.

The figure that counts is the broker's CPU time, since clients share the machine; rates are told
beside it. Work is done on topics that are `replicated`, which acknowledge from the page cache, as
Kafka does by default; the `synced` twin beside it acknowledges only what the disk has confirmed.
With a peer, the same work runs against it, and the ratios are printed; without an address the peer
is Apache Kafka itself, started for it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from math import nan

from bench import rdkafka
from bench.blaster import Job, Seen
from bench.broker_targets import Target, floor, other_broker, own_broker
from bench.children import done_by
from bench.kafka import real_kafka
from bench.measure import Cell, Table
from bench.ratios import Ratios
from bench.suites import KAFKA
from bench.warm_pages import warm_pages

SECONDS = 4.0
ROUNDS = 3
WARM_SECONDS = 1.0
# Some hundred thousand requests of each kind, after which a JVM compiles nothing any more.
WARM_PEER_SECONDS = 10.0
KIB = 1024
REPLICATED, SYNCED = "replicated", "synced"
LATENCY_RATE = 1_000
# What a client of a slow broker may take for its records, beside what every child is granted.
CLIENT_SECONDS = 60.0
CLIENT_ROUNDS = 4
# Large batches fill gigabytes of pages in no time, and what a page costs that is cold hides what
# the broker does with it. Rounds of such works are short, each has a topic of its own and finds the
# pages that it takes warm.
SHORT_ROUNDS = 4
SHARE_ROUNDS = 5
SHORT_SECONDS, SHORTER_SECONDS = 1.0, 0.5
# What Kafka's own producers send on a connection before they wait for an answer.
IN_FLIGHT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One row: what is asked, how, and of how many connections."""

    name: str
    kind: str
    connections: int
    bytes_each: int
    partitions: int
    durability: str = REPLICATED
    is_idempotent: bool = False
    rate: int = 0
    in_flight: int = 1
    # Seconds of rounds that have a topic each; 0: long rounds, all on one topic.
    short_seconds: float = 0.0
    target: str = ""
    has_floor: bool = False


PRODUCE = (
    Work(
        name="100 B, idempotent, 16 connections",
        kind="produce",
        connections=16,
        bytes_each=100,
        partitions=16,
        is_idempotent=True,
        target="15 µs",
        has_floor=True,
    ),
    Work(
        name="100 B, 1 connection",
        kind="produce",
        connections=1,
        bytes_each=100,
        partitions=1,
        has_floor=True,
    ),
    Work(
        name="100 B, 64 connections",
        kind="produce",
        connections=64,
        bytes_each=100,
        partitions=16,
        has_floor=True,
    ),
    Work(
        name="16 KB, 16 connections",
        kind="produce",
        connections=16,
        bytes_each=16 * KIB,
        partitions=16,
        short_seconds=SHORT_SECONDS,
        target="30 µs",
        has_floor=True,
    ),
    Work(
        name="1 MB, 4 connections",
        kind="produce",
        connections=4,
        bytes_each=1_000_000,
        partitions=4,
        short_seconds=SHORTER_SECONDS,
        target="350 µs",
        has_floor=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One row of what `synced` reaches of `replicated`: 16 producers of 16 KB."""

    partitions: int
    in_flight: int
    target: str = ""

    def work(self, durability: str) -> Work:
        return Work(
            name=f"{self.partitions} partitions, {self.in_flight} in flight",
            kind="produce",
            connections=16,
            bytes_each=16 * KIB,
            partitions=self.partitions,
            durability=durability,
            in_flight=self.in_flight,
            short_seconds=SHORT_SECONDS,
        )


SHARES = (
    Share(partitions=1, in_flight=IN_FLIGHT, target="60 %"),
    Share(partitions=16, in_flight=IN_FLIGHT, target="25 %"),
    Share(partitions=1, in_flight=1),
    Share(partitions=16, in_flight=1),
)
FETCH = (
    Work(
        name="16 KB, 4 connections",
        kind="fetch",
        connections=4,
        bytes_each=16 * KIB,
        partitions=4,
        target="20 µs",
    ),
    Work(
        name="1 MB, 4 connections",
        kind="fetch",
        connections=4,
        bytes_each=1_000_000,
        partitions=4,
        target="220 µs",
    ),
)
LATENCY = tuple(
    Work(
        name=f"1,000 a second, 100 B, {durability}",
        kind="produce",
        connections=1,
        bytes_each=100,
        partitions=1,
        durability=durability,
        rate=LATENCY_RATE,
        target=target,
    )
    for durability, target in ((REPLICATED, "200 / 500"), (SYNCED, "400 / 1,000"))
)
VERSIONS = (
    Work(
        name="ApiVersions, 16 connections",
        kind="versions",
        connections=16,
        bytes_each=0,
        partitions=1,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientWork:
    """What a user of librdkafka does with one partition."""

    name: str
    bytes_each: int
    records: int
    target: str


# Few enough for the page cache to keep, long enough for a second or more.
LIBRDKAFKA = (
    ClientWork(name="100 B", bytes_each=100, records=4_000_000, target="2 M records/s"),
    ClientWork(name="1 KB", bytes_each=1_000, records=1_500_000, target="1 GB/s"),
)
PRODUCER_SETTINGS = {
    "acks": "1",
    "linger.ms": "5",
    "queue.buffering.max.messages": "1000000",
    "queue.buffering.max.kbytes": "1048576",
}
CONSUMER_SETTINGS = {"queued.min.messages": "1000000", "fetch.message.max.bytes": "1048576"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a round showed; CPU in seconds of the broker alone."""

    seen: Seen
    cpu: float

    @property
    def cpu_us(self) -> float:
        return self.cpu / self.seen.requests * 1e6

    @property
    def rate(self) -> float:
        return self.seen.requests / self.seen.seconds

    @property
    def gb_per_second(self) -> float:
        return max(self.seen.sent_bytes, self.seen.received_bytes) / self.seen.seconds / 1e9


def run(peer: str | None = None) -> Iterator[Table]:
    """`peer`: another broker's HOST:PORT, or KAFKA for one that is started here."""
    with ExitStack() as stack:
        started = [stack.enter_context(own_broker())]
        if peer == KAFKA:
            started.append(stack.enter_context(real_kafka()))
        elif peer:
            started.append((other_broker(peer), nan))
        targets = [target for target, _seconds in started]
        ours = targets[0]
        at_rest = [target.rss_mib() for target in targets]
        ratios = Ratios(targets[-1].name)
        for target in targets[1:]:
            _warm_up(target)
        yield _table("requests without a log", VERSIONS, targets, ratios)
        yield _table("produce", PRODUCE, targets, ratios)
        yield _shares(ours)
        yield _table("fetch from the page cache", FETCH, targets, ratios)
        yield _latency(targets, ratios)
        yield _librdkafka(targets, ratios)
        yield Table(
            title="one broker",
            columns=("what", "target", *(target.name for target in targets)),
            rows=(
                ("start until it serves, s", "3", *(seconds for _target, seconds in started)),
                ("resident at rest, MiB", "45", *at_rest),
                ("resident after this load, MiB", "90", *(t.rss_mib() for t in targets)),
            ),
            notes=("ours is `up` with agent and console until all is healthy",),
        )
        if len(targets) > 1:
            yield ratios.table()


def _warm_up(peer: Target) -> None:
    """Let a peer compile what it runs often: ours has no such state, and a JVM starts slowly."""
    work = PRODUCE[0]
    topic = peer.make_topic("bench-warm-up", work.partitions)
    for kind in ("produce", "fetch"):
        _blast(_replaced(_job(peer, work, topic), kind=kind, seconds=WARM_PEER_SECONDS))
    peer.delete_topic(topic)


def _table(title: str, works: tuple[Work, ...], targets: list[Target], ratios: Ratios) -> Table:
    names = [target.name for target in targets]
    columns = ["work", "target"]
    for name in names:
        columns += [f"{name}: CPU µs", "requests/s", "GB/s", "p99 µs"]
    has_twins = any(work.kind != "versions" for work in works)
    if has_twins:
        columns += ["synced: CPU µs", "requests/s"]
    has_floors = any(work.has_floor for work in works)
    if has_floors:
        columns += ["kernel alone: CPU µs", "requests/s"]
    if len(targets) > 1:
        columns.append(f"CPU, share of {names[1]}")
    rows = []
    for work in works:
        found = [measure(target, work) for target in targets]
        row: list[Cell] = [work.name, work.target]
        for figures in found:
            row += [figures.cpu_us, figures.rate, figures.gb_per_second, figures.seen.p99_us]
        if has_twins:
            twin = measure(targets[0], replace(work, durability=SYNCED))
            row += [twin.cpu_us, twin.rate]
        if work.has_floor:
            bare = bare_work(work)
            row += [bare.cpu_us, bare.rate]
        elif has_floors:
            row += [None, None]
        if len(found) > 1:
            row.append(found[0].cpu_us / found[1].cpu_us)
            _note(ratios, f"{title}: {work.name}", found[0], found[1])
        rows.append(row)
    return Table(title=title, columns=tuple(columns), rows=rows)


def _note(ratios: Ratios, name: str, ours: Figures, peer: Figures) -> None:
    ratios.note(
        name,
        cpu=(ours.cpu_us, peer.cpu_us),
        rate=(ours.rate, peer.rate),
        p99=(ours.seen.p99_us, peer.seen.p99_us),
    )


def _shares(ours: Target) -> Table:
    """Both durabilities in turns, so that they have the same minutes of the disk."""
    rows: list[list[Cell]] = []
    for share in SHARES:
        pairs = sorted((_pair(ours, share, number) for number in range(SHARE_ROUNDS)), key=_ratio)
        pair = pairs[SHARE_ROUNDS // 2]
        bare = [_rate_of_floor(share.work(durability)) for durability in (REPLICATED, SYNCED)]
        rows.append(
            [
                share.partitions,
                share.in_flight,
                *pair,
                100 * _ratio(pair),
                f"{100 * _ratio(pairs[0]):.0f} to {100 * _ratio(pairs[-1]):.0f}",
                share.target,
                *bare,
                100 * bare[1] / bare[0],
            ]
        )
    return Table(
        title="synced, 16 producers of 16 KB",
        columns=(
            "partitions",
            "in flight each",
            "replicated/s",
            "synced/s",
            "share, %",
            "spread",
            "target",
            "kernel alone: unsynced/s",
            "synced/s",
            "share, %",
        ),
        rows=rows,
        notes=(
            "the round with the middle share of five; Kafka's own producers have up to 5 in flight",
            "the kernel alone writes one file, whatever the partitions",
        ),
    )


def _pair(ours: Target, share: Share, number: int) -> tuple[float, float]:
    """Requests a second, replicated and synced, in one round each; who is first alternates."""
    order = (REPLICATED, SYNCED) if number % 2 else (SYNCED, REPLICATED)
    rates = {}
    for durability in order:
        warm_pages()
        rates[durability] = _measure(ours, share.work(durability), number).rate
    return rates[REPLICATED], rates[SYNCED]


def _ratio(pair: tuple[float, float]) -> float:
    return pair[1] / pair[0]


def _rate_of_floor(work: Work) -> float:
    with floor(is_synced=work.durability == SYNCED) as kernel:
        return max(figures.rate for figures in _rounds_of_floor(kernel, work))


def _rounds_of_floor(kernel: Target, work: Work) -> list[Figures]:
    """As many rounds as a broker has, on pages that are as warm."""
    found = []
    for _ in range(SHORT_ROUNDS if work.short_seconds else ROUNDS):
        if work.short_seconds:
            warm_pages()
        found.append(_round(kernel, _job(kernel, work, "floor")))
    return found


def _latency(targets: list[Target], ratios: Ratios) -> Table:
    rows = []
    for work in LATENCY:
        found = [measure(target, work) for target in targets]
        for target, figures in zip(targets, found, strict=True):
            seen = figures.seen
            rows.append((work.name, target.name, seen.p50_us, seen.p99_us, work.target))
        if len(found) > 1 and work.durability == REPLICATED:
            _note(ratios, f"latency: {work.name}", found[0], found[1])
        with floor(is_synced=work.durability == SYNCED) as kernel:
            seen = _blast(_job(kernel, work, "floor"))
            rows.append((work.name, kernel.name, seen.p50_us, seen.p99_us, ""))
    return Table(
        title="latency of a produce request",
        columns=("work", "broker", "p50 µs", "p99 µs", "target p50 / p99"),
        rows=rows,
    )


def _librdkafka(targets: list[Target], ratios: Ratios) -> Table:
    rows: list[list[Cell]] = []
    for work in LIBRDKAFKA:
        found = [_client_rows(target, work, REPLICATED) for target in targets]
        for of_target in found:
            rows += of_target
        for ours, theirs in zip(found[0], found[-1], strict=True):
            if len(found) > 1:
                cpu = (_figure(ours, 4), _figure(theirs, 4))
                rate = (_figure(ours, 2), _figure(theirs, 2))
                ratios.note(f"librdkafka: {ours[0]}", cpu=cpu, rate=rate)
        rows += _client_rows(targets[0], work, SYNCED)
    return Table(
        title="librdkafka, one client and one partition",
        columns=("work", "broker", "M records/s", "GB/s", "CPU s/M records", "CPU s/GB", "target"),
        rows=rows,
    )


def _client_rows(target: Target, work: ClientWork, durability: str) -> list[list[Cell]]:
    """The fastest round of each kind. A topic each, read from its beginning, on warm pages."""
    produced: list[list[Cell]] = []
    consumed: list[list[Cell]] = []
    for number in range(CLIENT_ROUNDS):
        topic = f"bench-c-{work.bytes_each}-{durability}-{number}"
        target.make_topic(topic, 1, durability=durability)
        warm_pages()
        try:
            produced.append(_client_row(target, work, topic, is_producer=True))
            consumed.append(_client_row(target, work, topic, is_producer=False))
        finally:
            target.delete_topic(topic)
    best = [max(produced, key=_client_rate), max(consumed, key=_client_rate)]
    if durability == SYNCED:
        # The targets are those of the other rows.
        best = [[f"{row[0]}, synced", *row[1:-1], ""] for row in best]
    return best


def _client_rate(row: list[Cell]) -> float:
    return _figure(row, 2)


def _figure(row: list[Cell], column: int) -> float:
    figure = row[column]
    assert isinstance(figure, float)
    return figure


def _client_row(target: Target, work: ClientWork, topic: str, *, is_producer: bool) -> list[Cell]:
    job = rdkafka.Job(
        bootstrap=target.bootstrap,
        topic=topic,
        is_producer=is_producer,
        bytes_each=work.bytes_each,
        records=work.records,
        settings=PRODUCER_SETTINGS if is_producer else CONSUMER_SETTINGS,
    )
    before = target.cpu_seconds()
    seen = rdkafka.Seen(**done_by("bench.rdkafka", asdict(job), seconds=CLIENT_SECONDS))
    cpu = target.cpu_seconds() - before
    if is_producer:
        written = target.records_in(topic, 1)
        assert written == work.records, f"{work.records} records produced, {written} written"
    millions, gigabytes = work.records / 1e6, work.records * work.bytes_each / 1e9
    name = f"{'produce' if is_producer else 'consume'} {work.name}"
    return [
        name,
        target.name,
        millions / seen.seconds,
        gigabytes / seen.seconds,
        cpu / millions,
        cpu / gigabytes,
        work.target if is_producer else "",
    ]


def bare_request(kernel: Target) -> Figures:
    """What the first row of `PRODUCE` costs without a broker: the measure of the machine."""
    return min(_rounds_of_floor(kernel, PRODUCE[0]), key=_cost)


def bare_bytes(kernel: Target) -> Figures:
    """What 16 KB cost without a broker: the measure of the machine where bytes count."""
    work = next(work for work in PRODUCE if work.bytes_each == 16 * KIB)
    return min(_rounds_of_floor(kernel, work), key=_cost)


def bare_work(work: Work) -> Figures:
    """What a row costs without a broker."""
    with floor(is_synced=work.durability == SYNCED) as kernel:
        return min(_rounds_of_floor(kernel, work), key=_cost)


def measure(target: Target, work: Work) -> Figures:
    """The best of some rounds, on warm pages and on topics of its own."""
    if not work.short_seconds:
        return _measure(target, work, 0)
    found = []
    for number in range(SHORT_ROUNDS):
        warm_pages()
        found.append(_measure(target, work, number))
    return min(found, key=_cost)


def _measure(target: Target, work: Work, number: int) -> Figures:
    shape = f"{work.bytes_each}-{work.partitions}-{work.connections}-{work.in_flight}"
    # A name of its own: one that was just deleted is free once its last flush has ended.
    topic = f"bench-{work.kind}-{shape}-{work.durability}-{work.rate}-{number}"
    target.make_topic(topic, work.partitions, durability=work.durability)
    job = _job(target, work, topic)
    try:
        if work.kind == "fetch":
            _blast(_replaced(job, kind="produce", seconds=WARM_SECONDS))
        before = target.records_in(topic, work.partitions)
        figures, requests = _best_of(target, job, rounds=1 if work.short_seconds else ROUNDS)
        if work.kind == "produce":
            # A producer that is answered with errors looks very fast.
            written = target.records_in(topic, work.partitions) - before
            assert written == requests, f"{requests} requests wrote {written} records"
        if work.kind == "fetch":
            least = 0.5 * work.bytes_each * figures.seen.requests
            assert figures.seen.received_bytes > least, f"{work.name}: answers were empty"
        return figures
    finally:
        target.delete_topic(topic)


def _best_of(target: Target, job: Job, *, rounds: int) -> tuple[Figures, int]:
    """The round with the least CPU for a request, and the requests of all rounds."""
    found = [_round(target, job) for _ in range(rounds)]
    return min(found, key=_cost), sum(figures.seen.requests for figures in found)


def _cost(figures: Figures) -> float:
    return figures.cpu_us


def _round(target: Target, job: Job) -> Figures:
    before = target.cpu_seconds()
    seen = _blast(job)
    return Figures(seen=seen, cpu=target.cpu_seconds() - before)


def _job(target: Target, work: Work, topic: str) -> Job:
    return Job(
        host=target.host,
        port=target.port,
        kind=work.kind,
        connections=work.connections,
        seconds=work.short_seconds or SECONDS,
        topic=topic,
        partitions=work.partitions,
        bytes_each=work.bytes_each,
        # The floor gives out no producer ids.
        is_idempotent=work.is_idempotent and topic != "floor",
        rate=work.rate,
        in_flight=work.in_flight,
    )


def _replaced(job: Job, **changes: object) -> Job:
    return Job(**{**asdict(job), **changes})


def _blast(job: Job) -> Seen:
    return Seen(**done_by("bench.blaster", asdict(job), seconds=job.seconds))
