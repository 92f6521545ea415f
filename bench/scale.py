"""What a broker bears: thousands of partitions, ten thousand quiet connections, clients that churn.

Each figure stands beside its target. Memory is what the kernel has resident for the process, in
megabytes of a million bytes, which is the stricter reading of the targets.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, TypeVar

from bench.blaster import Job, Seen
from bench.broker_targets import Target
from bench.children import done_by
from bench.churn import Came, Churn, in_a_child
from bench.crowd import crowd, possible
from bench.homes import another_broker, end, found_clean, metrics, running_home
from bench.measure import Cell, Table
from bench.partitions import create, first_answers, produce, spread, wait_until_led
from bench.processes import Process

Number = TypeVar("Number", int, float)

COLUMNS: Final = ("what", "figure", "target", "met")
MB: Final = 1e6
KIB: Final = 1024

PARTITIONS: Final = 5_000
CREATE_SECONDS: Final = 30
RESTART_SECONDS: Final = 15
PARTITIONS_MB: Final = 80
REST_MB: Final = 45
STARTS: Final = 5
START_SECONDS: Final = 0.7

CONNECTIONS: Final = 10_000
CONNECTION_KIB: Final = 12
PAIRS: Final = 5
RATE: Final = 1_000
LATENCY_SECONDS: Final = 5.0
# How much worse an active client may fare beside the quiet ones: the larger of the two.
SHARE_WORSE: Final = 0.20
MICROSECONDS_WORSE: Final = 200.0
# For the broker to notice that its connections have gone.
QUIET_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.05

MINUTES: Final = 10
ROUND_SECONDS: Final = 60.0
# Rounds in which everything that is made once may be made: caches, threads, open files.
WARM_ROUNDS: Final = 2
CHURN_PARTITIONS: Final = 8
CHURN_MB: Final = 2


def run(minutes: int = MINUTES) -> Iterator[Table]:
    """`minutes` is how long clients churn."""
    yield start_table()
    yield partitions_table(PARTITIONS)
    yield connections_table(CONNECTIONS, pairs=PAIRS, seconds=LATENCY_SECONDS)
    yield churn_table([ROUND_SECONDS] * minutes)


def judged(what: str, figure: float, target: float) -> tuple[Cell, ...]:
    """A row whose figure may be as large as its target."""
    return (what, figure, f"≤ {target:,g}", "yes" if figure <= target else "NO")


def told(what: str, figure: Cell) -> tuple[Cell, ...]:
    """A row that only informs."""
    return (what, figure, "", "")


# -- a broker alone ------------------------------------------------------------------------------


def start_table() -> Table:
    """How soon a process of a broker answers, beside a cluster that runs."""
    firsts, wholes, costs = [], [], []
    with running_home(brokers=1) as home:
        model = home.first_broker()
        rest = _process(model).rss_bytes() / MB
        for _ in range(STARTS):
            with another_broker(_process(model).pid) as (started, since):
                first, whole = first_answers(started, since)
                costs.append(_process(started).cpu_seconds())
            firsts.append(first)
            wholes.append(whole)
    return Table(
        title="start of one broker",
        columns=COLUMNS,
        rows=(
            judged(
                "process start to first ApiVersions, s", statistics.median(firsts), START_SECONDS
            ),
            judged(
                "process start to Metadata that names it, s",
                statistics.median(wholes),
                START_SECONDS,
            ),
            told("slowest of these, s", max(wholes)),
            told("its CPU until then, s: median", statistics.median(costs)),
            judged("resident at rest, MB", rest, REST_MB),
        ),
        notes=(f"median of {STARTS} starts on empty log dirs, in a cluster that runs",),
    )


# -- partitions ----------------------------------------------------------------------------------


def partitions_table(count: int) -> Table:
    topic = "bench-many"
    with running_home(brokers=1) as home:
        broker = home.first_broker()
        spent = _process(broker).cpu_seconds()
        created = create(broker, topic, count)
        spent = _process(broker).cpu_seconds() - spent
        fresh = _process(broker).rss_bytes() / MB
        began = time.perf_counter()
        produce(broker, topic, range(count))
        wrote = time.perf_counter() - began
        written = _process(broker).rss_bytes() / MB
        stopped, restarted = restart(broker, topic, count)
        was_clean = found_clean(home.folder)
        began = time.perf_counter()
        home.stop()
        home.start(brokers=1)
        again = home.first_broker()
        wait_until_led(again, topic, count)
        produce(again, topic, spread(count))
        down_up = time.perf_counter() - began
        rows = (
            judged(f"one topic of {count:,} created until all lead, s", created, CREATE_SECONDS),
            told("the broker's CPU for that, s", spent),
            judged("resident with them, MB", fresh, PARTITIONS_MB),
            told("one record to each, until acknowledged, s", wrote),
            judged("resident after that, MB", written, PARTITIONS_MB),
            told("SIGTERM until the process has ended, s", stopped),
            judged("SIGTERM until produce is answered again, s", restarted, RESTART_SECONDS),
            told("that start found the log dir clean", "yes" if was_clean else "NO"),
            judged("`down` and `up` until produce is answered, s", down_up, RESTART_SECONDS),
            told("that start found the log dir clean", "yes" if found_clean(home.folder) else "NO"),
            judged("resident after it, MB", _process(again).rss_bytes() / MB, PARTITIONS_MB),
        )
    return Table(
        title=f"{count:,} partitions on one broker",
        columns=COLUMNS,
        rows=rows,
        notes=(
            "created by one CreateTopics; led is what ListOffsets answers for, asked for often",
            "produced to after a start: 16 partitions from the first to the last",
        ),
    )


def restart(broker: Target, topic: str, count: int) -> tuple[float, float]:
    """Seconds until the process has ended, and until its successor serves all data again."""
    began = time.perf_counter()
    end(_process(broker).pid)
    stopped = time.perf_counter() - began
    # The supervisor starts it again on the same port.
    wait_until_led(broker, topic, count)
    produce(broker, topic, spread(count))
    return stopped, time.perf_counter() - began


# -- connections ---------------------------------------------------------------------------------


def connections_table(wanted: int, *, pairs: int, seconds: float) -> Table:
    count = possible(wanted)
    notes = [f"produce of 100 B to one partition, `replicated`, {RATE:,} requests a second"]
    if count < wanted:
        notes.append(f"the limit of open files allows {count:,} connections, not {wanted:,}")
    with running_home(brokers=1) as home:
        broker = home.first_broker()
        topic = broker.make_topic("bench-beside", 1, durability="replicated")
        # Whatever an active client needs is there before memory is looked at.
        p99(broker, topic, seconds)
        grown, alone, beside = beside_a_crowd(broker, topic, count, pairs=pairs, seconds=seconds)
    worse = statistics.median(b - a for a, b in zip(alone, beside, strict=True))
    allowed = max(SHARE_WORSE * statistics.median(alone), MICROSECONDS_WORSE)
    return Table(
        title=f"{count:,} idle connections",
        columns=COLUMNS,
        rows=(
            judged("growth of resident memory, KiB each", grown, CONNECTION_KIB),
            told("p99 of an active client alone, µs: median", statistics.median(alone)),
            told("… lowest and highest", _span(alone)),
            told("p99 beside the idle ones, µs: median", statistics.median(beside)),
            told("… lowest and highest", _span(beside)),
            judged(f"worse by, µs: median of {pairs} pairs", worse, allowed),
        ),
        notes=tuple(notes),
    )


def beside_a_crowd(
    broker: Target, topic: str, count: int, *, pairs: int, seconds: float
) -> tuple[float, list[float], list[float]]:
    """KiB that a connection costs, and p99 of pairs of runs without and with the crowd.

    Every second pair has its crowd first, so that neither side is always the later one.
    """
    process = _process(broker)
    alone, beside = [], []
    grown = 0.0
    for number in range(pairs):
        at_rest, descriptors = process.rss_bytes(), process.descriptors()
        if number % 2 == 0:
            alone.append(p99(broker, topic, seconds))
        with crowd(broker.host, broker.port, count):
            if number == 0:
                grown = (process.rss_bytes() - at_rest) / KIB / count
            beside.append(p99(broker, topic, seconds))
        _until_at_most(process.descriptors, descriptors)
        if number % 2:
            alone.append(p99(broker, topic, seconds))
    return grown, alone, beside


def p99(broker: Target, topic: str, seconds: float) -> float:
    job = Job(
        host=broker.host,
        port=broker.port,
        kind="produce",
        connections=1,
        seconds=seconds,
        topic=topic,
        rate=RATE,
    )
    return Seen(**done_by("bench.blaster", asdict(job), seconds=seconds)).p99_us


# -- churn ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A broker after a round of churn, when everybody has gone."""

    came: Came
    rss_bytes: int
    descriptors: int
    threads: int
    tasks: float  # of its event loop


def churn_table(rounds: Sequence[float]) -> Table:
    """`rounds` are seconds each; nobody is connected when samples are taken between them."""
    with running_home(brokers=1) as home:
        broker = home.first_broker()
        topic = broker.make_topic("bench-churn", CHURN_PARTITIONS)
        # All at once, so that the broker has all the threads that it will ever need for them.
        produce(broker, topic, range(CHURN_PARTITIONS))
        samples = [churn_round(broker, topic, seconds) for seconds in rounds]
        lasting = churn_round(broker, topic, rounds[-1], is_idempotent=True)
    warm = min(WARM_ROUNDS, len(samples))
    base, *later = samples[warm - 1 :]
    growth = max((sample.rss_bytes - base.rss_bytes for sample in later), default=0)
    looks = [base, *later, lasting]
    counts: dict[str, list[float]] = {
        "open descriptors": [look.descriptors for look in looks],
        "threads": [look.threads for look in looks],
        "tasks": [look.tasks for look in looks],
    }
    kept = (lasting.rss_bytes - samples[-1].rss_bytes) / lasting.came.clients / CHURN_PARTITIONS
    return Table(
        title=f"churn of clients for {sum(rounds) / 60:.1f} minutes",
        columns=COLUMNS,
        rows=(
            told("clients that came and went", sum(s.came.raw + s.came.clients for s in samples)),
            *(
                judged(f"{name} after round {warm}: most above least", _range(values), 0)
                for name, values in counts.items()
                if values
            ),
            judged(f"resident after round {warm}: growth, MB", growth / MB, CHURN_MB),
            *(told(f"after round {n}", _shown(sample)) for n, sample in enumerate(samples, 1)),
            told("after a round of idempotent producers", _shown(lasting)),
            told("one of them leaves in each partition, B", kept),
        ),
        notes=(
            "raw connections: one in eight each leaves its answer, half a request, or by a reset",
            "what an idempotent producer leaves is its state, which is kept for a day, as in Kafka",
        ),
    )


def churn_round(
    broker: Target, topic: str, seconds: float, *, is_idempotent: bool = False
) -> Sample:
    job = Churn(
        host=broker.host,
        port=broker.port,
        topic=topic,
        partitions=CHURN_PARTITIONS,
        seconds=seconds,
    )
    if is_idempotent:
        # Nearly alone, so that what they leave is not mixed with what others do.
        job = replace(job, is_idempotent=True, raw_rate=1)
    came = in_a_child(job)
    process = _process(broker)
    _until_at_most(lambda: metrics(process.pid)["samsa_connections"], 0)
    return Sample(
        came=came,
        rss_bytes=process.rss_bytes(),
        descriptors=settled(process.descriptors),
        threads=process.threads(),
        tasks=settled(lambda: metrics(process.pid)["samsa_tasks"]),
    )


def settled(count: Callable[[], Number]) -> Number:
    """The least of some looks: whoever looks through a connection is counted, too, for a moment."""
    looks = []
    for _ in range(20):
        looks.append(count())
        time.sleep(0.01)
    return min(looks)


def _shown(sample: Sample) -> str:
    found = [
        f"{sample.rss_bytes / MB:.1f} MB",
        f"{sample.descriptors} descriptors",
        f"{sample.threads} threads",
        f"{sample.tasks:g} tasks",
    ]
    return ", ".join(found)


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _span(values: Sequence[float]) -> str:
    return f"{min(values):,.0f} to {max(values):,.0f}"


def _process(target: Target) -> Process:
    assert target.pid is not None, "the broker is a process of this machine"
    return Process(target.pid)


def _until_at_most(count: Callable[[], float], most: float) -> None:
    """Waits for connections to be gone."""
    deadline = time.monotonic() + QUIET_SECONDS
    while (now := count()) > most:
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {QUIET_SECONDS} s there are {now:g}, not {most:g}")
        time.sleep(LOOK_SECONDS)
