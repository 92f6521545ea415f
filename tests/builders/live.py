"""A collector that tells what a test says, every value defaulted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any, Final

from console.monitoring.selectors import CollectorFailed, NotThere, Snapshot
from console.monitoring.tables import BrokerRow, GroupRow, PairRow, TopicRow, pair_key

Row = BrokerRow | TopicRow | GroupRow | PairRow
CLUSTER_ID: Final = "0hUvQ2rWSx6lJ3u8T6kRrg"
NOW_MS: Final = 1_790_000_000_000


def broker(broker_id: int, **values: Any) -> BrokerRow:
    row: dict[str, Any] = {
        "id": broker_id,
        "address": f"127.0.0.1:{9091 + broker_id}",
        "answered_ms": NOW_MS,
        "failure": "",
        "bytes_in_per_s": 0.0,
        "bytes_out_per_s": 0.0,
        "requests_per_s": 0.0,
        "connections": 0,
        "partitions": 0,
        "log_bytes": 0,
        "memory_bytes": 60_000_000,
        "disk_size_bytes": 100_000_000_000,
        "disk_used_bytes": 40_000_000_000,
        "disk_free_bytes": 60_000_000_000,
        "disk_device": 2049,
        "loop_delay_p99_ms": 0.2,
        "folders_aside": 0,
    }
    row |= values
    if "disk_free_bytes" in values and "disk_used_bytes" not in values:
        row["disk_used_bytes"] = row["disk_size_bytes"] - row["disk_free_bytes"]
    return BrokerRow(**row)


def topic(name: str, **values: Any) -> TopicRow:
    row: dict[str, Any] = {
        "name": name,
        "partitions": 1,
        "size_bytes": 0,
        "records_per_s": 0.0,
        "bytes_in_per_s": 0.0,
        "bytes_out_per_s": 0.0,
        "lag": None,
        "verdict": "ok",
        "worst_group": "",
    }
    return TopicRow(**{**row, **values})


LAG: Final[Mapping[str, Any]] = {
    "lag": 0,
    "unknown": 0,
    "verdict": "ok",
    "oldest_ms": 0,
    "eta_low_s": 0.0,
    "eta_high_s": 0.0,
    "rule": "",
    "since_ms": 0,
    "uncommitted": 0,
    "at_most": 0,
}


def group(name: str, **values: Any) -> GroupRow:
    row: dict[str, Any] = {
        **LAG,
        "name": name,
        "type": "consumer",
        "state": "Stable",
        "epoch": 1,
        "members": 1,
        "rebalances": 1,
        "topics": 1,
        "owned": 0,
        "recent_rebalances": 0,
        "counted_since_ms": 0,
    }
    return GroupRow(**{**row, **values})


def pair(of_group: str, of_topic: str, **values: Any) -> PairRow:
    row: dict[str, Any] = {**LAG, "group": of_group, "topic": of_topic, "partitions": 1}
    return PairRow(**{**row, **values})


@dataclass(slots=True, kw_only=True)
class Told:
    """The source of `console.queries.live` in a test."""

    cluster_id: str = CLUSTER_ID
    age_s: float | None = 0.5
    failure: str = ""
    offline_partitions: int | None = 0
    tables: dict[str, dict[str, Sequence[Any]]] = field(
        default_factory=lambda: {"brokers": {}, "topics": {}, "groups": {}, "pairs": {}}
    )
    # What is answered by path; a function is called with the query.
    answers: dict[str, Mapping[str, Any] | Callable[..., Mapping[str, Any]] | Exception] = field(
        default_factory=dict
    )
    asked: list[tuple[str, Mapping[str, str | int]]] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def put(self, *rows: Row) -> None:
        for row in rows:
            match row:
                case BrokerRow():
                    table, key = "brokers", str(row.id)
                case TopicRow():
                    table, key = "topics", row.name
                case GroupRow():
                    table, key = "groups", row.name
                case PairRow():
                    table, key = "pairs", pair_key(row.group, row.topic)
            # A table holds the fields in order, as it comes from the collector's JSON.
            assert len(astuple(row)) == len(fields(row)), "rows are flat"
            self.tables[table][key] = astuple(row)

    def go_silent(self, *, age_s: float = 30.0, failure: str = "the collector is away") -> None:
        """Answer no more; what was told stays, and ages."""
        self.age_s, self.failure = age_s, failure

    def begin_silent(self) -> None:
        """Never have told anything."""
        self.age_s, self.failure = None, "the collector does not answer: No such file or directory"
        self.tables = {}

    def snapshot(self) -> Snapshot:
        return Snapshot(
            cluster_id=self.cluster_id,
            age_s=self.age_s,
            failure=self.failure,
            tables={name: dict(rows) for name, rows in self.tables.items()},
            offline_partitions=self.offline_partitions,
        )

    def wait(self, is_new: Callable[[Snapshot], bool], *, seconds: float) -> bool:
        """Return at once whether it is new; no time passes here."""
        self.waited.append(seconds)
        return is_new(self.snapshot())

    def ask(self, path: str, **query: str | int) -> Mapping[str, Any]:
        self.asked.append((path, query))
        if self.failure:
            raise CollectorFailed(self.failure)
        answer = self.answers.get(path)
        if answer is None:
            raise NotThere(f"nobody tells of {path} {dict(query)}")
        if isinstance(answer, Exception):
            raise answer
        return answer(**query) if callable(answer) else answer
