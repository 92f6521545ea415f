"""Measures an idle cluster: what three brokers, agent, web server and supervisor cost together.

CPU is of all processes that descend from the supervisor, as a share of one core; memory and
descriptors are reported too, since a leak at rest is a leak under load as well.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from bench.homes import running_home
from bench.measure import Cell, Table
from bench.processes import Process, family

BROKERS: Final = 3
MINUTES: Final = 60
# A start causes work that is not repeated.
SETTLE_SECONDS: Final = 60.0
SHARE_PERCENT: Final = 3.0
MB: Final = 1e6
COLUMNS: Final = (
    "process",
    "% of one core",
    "target",
    "met",
    "MB before",
    "MB after",
    "descriptors more",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One process at one moment."""

    cpu_seconds: float
    rss_bytes: int
    descriptors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Two looks at the same processes, and the seconds between them."""

    before: Mapping[int, Look]
    after: Mapping[int, Look]
    seconds: float

    def percent(self, pid: int) -> float:
        """CPU of one process as a share of one core."""
        return 100 * (self.after[pid].cpu_seconds - self.before[pid].cpu_seconds) / self.seconds

    def percent_in_all(self) -> float:
        return sum(self.percent(pid) for pid in self.before)


def run(minutes: int = MINUTES) -> Iterator[Table]:
    """`minutes` are measured after one minute of settling."""
    with running_home(brokers=BROKERS) as home:
        pids = home.pids()
        time.sleep(SETTLE_SECONDS)
        rest = watch(pids["supervisor"], 60.0 * minutes)
    yield table(rest, {pid: name for name, pid in pids.items()})


def watch(supervisor: int, seconds: float) -> Rest:
    """Looks at a home before and after that time; a failure if one of its processes ended."""
    began = time.monotonic()
    before = look_at(supervisor)
    time.sleep(seconds)
    after = look_at(supervisor)
    assert set(before) == set(after), "a process ended or began in an idle cluster: see its logs"
    return Rest(before=before, after=after, seconds=time.monotonic() - began)


def look_at(supervisor: int) -> dict[int, Look]:
    """The supervisor and all that descends from it."""
    looks = {}
    for pid in sorted(family(supervisor)):
        process = Process(pid)
        looks[pid] = Look(
            cpu_seconds=process.cpu_seconds(),
            rss_bytes=process.rss_bytes(),
            descriptors=process.descriptors(),
        )
    return looks


def table(rest: Rest, names: Mapping[int, str]) -> Table:
    share = rest.percent_in_all()
    verdict = "yes" if share <= SHARE_PERCENT else "NO"
    total: tuple[Cell, ...] = ("all together", share, f"≤ {SHARE_PERCENT:g}", verdict, "", "", "")
    return Table(
        title=f"an idle cluster for {rest.seconds / 60:.1f} minutes",
        columns=COLUMNS,
        rows=[total, *(_row(rest, pid, names.get(pid, f"child {pid}")) for pid in rest.before)],
    )


def _row(rest: Rest, pid: int, name: str) -> tuple[Cell, ...]:
    before, after = rest.before[pid], rest.after[pid]
    return (
        name,
        rest.percent(pid),
        "",
        "",
        before.rss_bytes / MB,
        after.rss_bytes / MB,
        after.descriptors - before.descriptors,
    )
