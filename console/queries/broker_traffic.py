"""Computes the requests and clients of one broker over its last minute, from the collector's data.

Pure. A broker counts since its start; the collector also keeps the counts of a minute ago, and the
page shows the difference. If there is no earlier count, or the broker has restarted since, counts
are those since its start, and the page says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# A difference over a shorter time means little.
LEAST_WINDOW_S: Final = 5.0
Row = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRow:
    """One API. Times are from its request to its answer; a fetch that waits for records counts."""

    api: str
    requests: int
    per_s: float | None
    errors: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
    """One client id; None stands for all clients that are not counted separately."""

    client_id: str | None
    software: str
    version: str
    connections: int
    in_per_s: float | None
    out_per_s: float | None
    requests_per_s: float | None
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """`window_s` is None if counts are those since the broker's start."""

    window_s: float | None
    apis: tuple[ApiRow, ...]
    clients: tuple[ClientRow, ...]
    groups: tuple[str, ...]  # groups that it coordinates, the first ones only
    group_count: int


def traffic_of(detail: Mapping[str, Any]) -> Traffic:
    """Return the broker's traffic from the collector's detail, the busiest first."""
    earlier = detail.get("earlier") or {}
    window_s = (detail["ms"] - earlier["ms"]) / 1000 if earlier else 0.0
    window = window_s if window_s >= LEAST_WINDOW_S else None
    apis_before = {row[0]: row for row in earlier.get("apis", ())} if window else {}
    clients_before = {row[0]: row for row in earlier.get("clients", ())} if window else {}
    bounds = detail.get("bucket_bounds_ms", ())
    apis = [_api(row, apis_before.get(row[0]), bounds, window) for row in detail.get("apis", ())]
    clients = [
        _client(row, clients_before.get(row[0]), window) for row in detail.get("clients", ())
    ]
    return Traffic(
        window_s=window,
        apis=tuple(sorted((row for row in apis if row.requests), key=lambda row: -row.requests)),
        clients=tuple(sorted(clients, key=_busiest_first)),
        groups=tuple(detail.get("groups", ())),
        group_count=detail.get("group_count", 0),
    )


def quantile(counts: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """Return the time within which a share of requests was answered, interpolated in its bucket."""
    wanted = share * sum(counts)
    if not wanted:
        return None
    below = 0
    for place, here in enumerate(counts):
        if here and below + here >= wanted:
            low = bounds[place - 1] if place else 0.0
            # The last bucket has no upper bound.
            high = bounds[place] if place < len(bounds) else low
            return float(low + (high - low) * (wanted - below) / here)
        below += here
    return None


def _api(row: Row, before: Row | None, bounds: Sequence[float], window_s: float | None) -> ApiRow:
    name, requests, errors, counts = row[:4]
    if before is not None and before[1] <= requests:
        requests, errors = requests - before[1], errors - before[2]
        counts = [now - then for now, then in zip(counts, before[3], strict=True)]
    return ApiRow(
        api=name,
        requests=requests,
        per_s=None if window_s is None else requests / window_s,
        errors=errors,
        p50_ms=quantile(counts, bounds, 0.50),
        p99_ms=quantile(counts, bounds, 0.99),
    )


def _client(row: Row, before: Row | None, window_s: float | None) -> ClientRow:
    name, software, version, connections, bytes_in, bytes_out, requests = row[:7]
    sums = (bytes_in, bytes_out, requests)
    then = tuple(before[4:7]) if before is not None else (0, 0, 0)
    # A sum that is lower than before was reset.
    grown = [now - was if now >= was else now for now, was in zip(sums, then, strict=True)]
    rates = [None if window_s is None else each / window_s for each in grown]
    return ClientRow(
        client_id=name,
        software=software or "",
        version=version or "",
        connections=connections,
        in_per_s=rates[0],
        out_per_s=rates[1],
        requests_per_s=rates[2],
        bytes_in=bytes_in,
        bytes_out=bytes_out,
    )


def _busiest_first(row: ClientRow) -> tuple[bool, float, str]:
    traffic = (row.in_per_s or 0.0) + (row.out_per_s or 0.0) or row.bytes_in + row.bytes_out
    # Put the rest last, whatever its count.
    return (row.client_id is None, -traffic, row.client_id or "")
