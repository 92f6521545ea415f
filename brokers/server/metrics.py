"""Counts a broker's metrics, and renders them for Prometheus.

Counting takes a few additions, because it happens on every request; the table `ROWS` has names,
kinds and descriptions, and `render` does all work on text, in pieces that its caller may spread
over many turns of the event loop.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from brokers.server.client_ledger import ClientLedger

# Buckets double from one microsecond; the last one is for everything above half a minute.
BUCKETS: Final = 26
BOUNDS: Final = tuple((1 << power) / 1e6 for power in range(BUCKETS - 1))
# An append that blocks the event loop for this long is a stall.
STALL_SECONDS: Final = 0.010


class Kind(Enum):
    """Prometheus's metric types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One metric: the attribute of `Metrics` that holds it, and its description."""

    name: str
    attribute: str
    kind: Kind
    sentence: str
    label: str = ""  # if the attribute is a mapping: the label of its keys


ROWS: Final = (
    Row(
        name="samsa_request_seconds",
        attribute="requests",
        kind=Kind.HISTOGRAM,
        sentence="Time from the arrival of a request to its answer, waits included.",
        label="api",
    ),
    Row(
        name="samsa_request_errors_total",
        attribute="request_errors",
        kind=Kind.COUNTER,
        sentence="Requests with an error code in their response, or without a response by a "
        "failure.",
        label="api",
    ),
    Row(
        name="samsa_loop_delay_seconds",
        attribute="loop_delay",
        kind=Kind.HISTOGRAM,
        sentence="Delay of timers of the event loop.",
    ),
    Row(
        name="samsa_received_bytes_total",
        attribute="bytes_in",
        kind=Kind.COUNTER,
        sentence="Bytes received from clients.",
    ),
    Row(
        name="samsa_sent_bytes_total",
        attribute="bytes_out",
        kind=Kind.COUNTER,
        sentence="Bytes sent to clients.",
    ),
    Row(
        name="samsa_connections",
        attribute="connections",
        kind=Kind.GAUGE,
        sentence="Client connections that are open.",
    ),
    Row(
        name="samsa_connections_opened_total",
        attribute="connections_opened",
        kind=Kind.COUNTER,
        sentence="Client connections that were accepted.",
    ),
    Row(
        name="samsa_connections_closed_total",
        attribute="connections_closed",
        kind=Kind.COUNTER,
        sentence="Client connections that ended, by reason.",
        label="reason",
    ),
    Row(
        name="samsa_output_bytes",
        attribute="output_bytes",
        kind=Kind.GAUGE,
        sentence="Bytes of responses that clients have not read yet.",
    ),
    Row(
        name="samsa_append_stalls_total",
        attribute="append_stalls",
        kind=Kind.COUNTER,
        sentence="Appends that blocked the event loop for more than 10 ms.",
    ),
    Row(
        name="samsa_append_stall_seconds_total",
        attribute="append_stall_seconds",
        kind=Kind.COUNTER,
        sentence="Time of those appends.",
    ),
    Row(
        name="samsa_handler_failures_total",
        attribute="handler_failures",
        kind=Kind.COUNTER,
        sentence="Requests that failed by a bug in a handler; each closed its connection.",
    ),
    Row(
        name="samsa_partitions",
        attribute="partitions",
        kind=Kind.GAUGE,
        sentence="Partitions that this broker leads.",
    ),
    Row(
        name="samsa_cleaned_bytes_total",
        attribute="cleaned_bytes",
        kind=Kind.COUNTER,
        sentence="Bytes that compaction removed from logs.",
    ),
    Row(
        name="samsa_cleaner_seconds_total",
        attribute="cleaner_seconds",
        kind=Kind.COUNTER,
        sentence="Time of compaction processes, which run one at a time.",
    ),
    Row(
        name="samsa_uncleanable_logs",
        attribute="uncleanable_logs",
        kind=Kind.GAUGE,
        sentence="Compacted logs whose cleaning failed; it is not retried before a restart.",
    ),
    Row(
        name="samsa_tasks",
        attribute="tasks",
        kind=Kind.GAUGE,
        sentence="Tasks of the event loop, including the one that reads this metric.",
    ),
    Row(
        name="samsa_groups",
        attribute="groups",
        kind=Kind.GAUGE,
        sentence="Groups that this broker coordinates, by state.",
        label="state",
    ),
    Row(
        name="samsa_group_rebalances_total",
        attribute="group_rebalances",
        kind=Kind.COUNTER,
        sentence="Rebalances: new generations and epochs of groups with members.",
    ),
    Row(
        name="samsa_offset_commits_total",
        attribute="offset_commits",
        kind=Kind.COUNTER,
        sentence="Committed offsets, counted when durable.",
    ),
    Row(
        name="samsa_coordinator_rounds_total",
        attribute="coordinator_rounds",
        kind=Kind.COUNTER,
        sentence="Batches of records that coordinators have written.",
    ),
    Row(
        name="samsa_coordinator_round_seconds",
        attribute="coordinator_round_seconds",
        kind=Kind.HISTOGRAM,
        sentence="Time from the append of such a batch until it was durable and applied.",
    ),
    Row(
        name="samsa_coordinator_load_seconds",
        attribute="coordinator_load_seconds",
        kind=Kind.HISTOGRAM,
        sentence="Time to load a partition of a coordinator.",
    ),
    Row(
        name="samsa_parked_requests",
        attribute="parked_requests",
        kind=Kind.GAUGE,
        sentence="Joins and syncs that wait for other members.",
    ),
)


class Histogram:
    """Counts of durations in doubling buckets, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        power = int(seconds * 1e6).bit_length()
        self.counts[power if power < BUCKETS else -1] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)


class Metrics:
    """See the module. Belongs to the event loop."""

    __slots__ = (*(row.attribute for row in ROWS), "clients")

    def __init__(self) -> None:
        self.requests: dict[str, Histogram] = {}
        self.request_errors: dict[str, int] = {}
        self.clients = ClientLedger()
        self.loop_delay = Histogram()
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections = 0
        self.connections_opened = 0
        self.connections_closed: dict[str, int] = {}
        self.output_bytes = 0
        self.append_stalls = 0
        self.append_stall_seconds = 0.0
        self.handler_failures = 0
        self.partitions = 0
        self.cleaned_bytes = 0
        self.cleaner_seconds = 0.0
        self.uncleanable_logs = 0
        self.tasks = 0  # set by the caller of `render`: counting means walking all of them
        # Also set by the caller of `render`.
        self.groups: dict[str, int] = {}
        self.group_rebalances = 0
        self.offset_commits = 0
        self.parked_requests = 0

        self.coordinator_rounds = 0
        self.coordinator_round_seconds = Histogram()
        self.coordinator_load_seconds = Histogram()

    def requests_of(self, api: str) -> Histogram:
        """Return the histogram of one API, for its route to keep."""
        return self.requests.setdefault(api, Histogram())

    def failed(self, api: str) -> None:
        """Count a request that was answered with an error."""
        self.request_errors[api] = self.request_errors.get(api, 0) + 1

    def round_ended(self, seconds: float) -> None:
        """Count a coordinator's round, whose records are safe."""
        self.coordinator_rounds += 1
        self.coordinator_round_seconds.observe(seconds)

    def closed(self, reason: str) -> None:
        """Count a closed connection; reasons are a fixed set of words."""
        self.connections_closed[reason] = self.connections_closed.get(reason, 0) + 1


def render(metrics: Metrics) -> Iterator[str]:
    """Yield Prometheus's text, one series at a time."""
    for row in ROWS:
        value = getattr(metrics, row.attribute)
        yield f"# HELP {row.name} {row.sentence}\n# TYPE {row.name} {row.kind.value}\n"
        series = list(value.items()) if isinstance(value, Mapping) else [("", value)]
        for key, one in series:
            labels = [f'{row.label}="{escape(key)}"'] if row.label else []
            yield "".join(_series(row.name, labels, one))


def _series(name: str, labels: list[str], value: Histogram | float) -> Iterator[str]:
    if not isinstance(value, Histogram):
        yield f"{name}{_braces(labels)} {value}\n"
        return
    count = 0
    for bound, here in zip(BOUNDS, value.counts, strict=False):
        count += here
        yield f"{name}_bucket{_braces([*labels, _le(f'{bound:.6f}')])} {count}\n"
    count += value.counts[-1]
    yield f"{name}_bucket{_braces([*labels, _le('+Inf')])} {count}\n"
    yield f"{name}_sum{_braces(labels)} {value.total:.6f}\n{name}_count{_braces(labels)} {count}\n"


def _le(bound: str) -> str:
    return f'le="{bound}"'


def _braces(labels: Iterable[str]) -> str:
    text = ",".join(labels)
    return f"{{{text}}}" if text else ""


def escape(value: str) -> str:
    """Escape a label's value for Prometheus."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
