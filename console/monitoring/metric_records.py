"""Serializes one sample as records of a topic: a key and a JSON object for each series.

Pure. `docs/howto/publish-metrics.md` describes the fields, which external programs read: fields may
be added but never renamed.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from console.monitoring.rings import KINDS, STEP_S, Moment

# kind of a series: (the `kind` of its records, the fields that name it)
NAMES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "cluster": ("cluster", ()),
    "broker": ("broker", ("broker",)),
    "topic": ("topic", ("topic",)),
    "group": ("group", ("group",)),
    "pair": ("group_topic", ("group", "topic")),
}
# Metrics whose field name is clearer than their name in the collector.
FIELDS: Final[Mapping[str, str]] = {
    "records": "records_per_s",
    "bytes_in": "bytes_in_per_s",
    "bytes_out": "bytes_out_per_s",
    "requests": "requests_per_s",
    "lag": "lag_records",
}
# Samples have single precision, and further digits would be noise.
DIGITS: Final = 7


@dataclass(slots=True, kw_only=True)
class Published:
    """How many records the topic got and how many were dropped, since the collector started."""

    written: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """One sample of all kinds. Immutable, so threads may share it."""

    at_ms: int
    cluster_id: str
    kinds: Mapping[str, Moment]
    # The number of partitions of each topic.
    partitions: Mapping[str, int]

    def __len__(self) -> int:
        """Return how many series there are, each of which is a record at most."""
        return sum(len(moment.names) for moment in self.kinds.values())


def records_of(moments: Moments) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and value of each series that has a value now."""
    told = {
        "time": datetime.fromtimestamp(moments.at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "cluster": moments.cluster_id,
        "interval_s": STEP_S,
    }
    for series, moment in moments.kinds.items():
        kind, naming = NAMES[series]
        metrics = [FIELDS.get(metric, metric) for metric in KINDS[series].metrics]
        for slot, name in enumerate(moment.names):
            values = measured(metrics, [column[slot] for column in moment.columns])
            if not values:
                continue
            if series == "topic" and name[0] in moments.partitions:
                values["partitions"] = moments.partitions[name[0]]
            named: dict[str, Any] = dict(zip(naming, name, strict=False))
            if "broker" in named:
                named["broker"] = int(named["broker"])
            yield (
                as_json([kind, *named.values()]),
                as_json({"kind": kind, **told, **named, **values}),
            )


def measured(metrics: list[str], samples: list[float]) -> dict[str, Any]:
    """Return the metrics of a series; missing samples are left out."""
    return {
        metric: shortened(sample)
        for metric, sample in zip(metrics, samples, strict=False)
        if not math.isnan(sample)
    }


def shortened(sample: float) -> float | int:
    """Return a number with its significant digits, and without `.0` if it is whole."""
    number = float(f"{sample:.{DIGITS}g}")
    return int(number) if number.is_integer() else number


def as_json(value: Any) -> bytes:  # noqa: ANN401 (JSON)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
