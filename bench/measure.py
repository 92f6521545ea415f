"""How a benchmark measures, and what it hands back.

Contenders run in turn within one process, several rounds, and each keeps its best: noise on a
shared machine only ever adds time, and it hits whoever runs at that moment, so alternating and
taking the best is what makes a ratio repeatable.
"""

import gc
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROUNDS = 5
# Long enough that the timer's own step and one lost time slice stay small in it.
ROUND_SECONDS = 0.05

Cell = str | int | float | None


class NoPeer(Exception):
    """A peer cannot be run here; the message says why."""


class Unmet(Exception):
    """A suite has shown what must not be, after its tables; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of a suite. A float is a figure (µs, GB/s, a ratio); its column names the unit."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    notes: tuple[str, ...] = field(default=())


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Keep the garbage collector out of a measurement."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def best_cpu(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int = ROUNDS,
    round_seconds: float = ROUND_SECONDS,
) -> dict[str, float]:
    """Return CPU seconds (user + system, all threads) of one call, best of alternated rounds."""
    with quiet_collector():
        loops = {name: _calibrate(call, round_seconds) for name, call in contenders.items()}
        best = dict.fromkeys(contenders, float("inf"))
        for _ in range(rounds):
            for name, call in contenders.items():
                best[name] = min(best[name], _time(call, loops[name]) / loops[name])
    return {name: nanoseconds / 1e9 for name, nanoseconds in best.items()}


def _calibrate(call: Callable[[], object], round_seconds: float) -> int:
    """Find how many calls fill a round; the first one also warms caches and lazy compilation."""
    call()
    loops = 1
    while (spent := _time(call, loops)) < round_seconds * 1e9 / 4:
        loops *= 4 if spent < round_seconds * 1e9 / 16 else 2
    return max(1, round(loops * round_seconds * 1e9 / spent))


def _time(call: Callable[[], object], loops: int) -> int:
    turns = range(loops)
    start = time.process_time_ns()
    for _ in turns:
        call()
    return time.process_time_ns() - start


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))


def rss_bytes() -> int:
    """Return the resident size of this process."""
    resident_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return resident_pages * os.sysconf("SC_PAGE_SIZE")


def machine() -> dict[str, str | int]:
    """Return the facts without which a figure means nothing."""
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count() or 0,
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
