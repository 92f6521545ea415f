"""Which tests one worker runs together, and which work is begun first.

Tests of a file that shares a fixture stay together, so that it is set up once; a long test is a
unit of its own. Long units begin first: one that began last would be waited for by idle cores.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from xdist.scheduler.loadscope import LoadScopeScheduling

from cli import durations
from cli.environment import ROOT

# What takes this long alone is worth a worker of its own.
LONG_SECONDS: Final = 1.0
# Even tests that share a fixture are divided beyond this: setting it up again takes a few seconds,
# and the run lasts as long as its longest unit.
UNIT_SECONDS: Final = 40.0
# Files that share more than a fixture: how one is known -> the unit it is in. What asks for all
# sources parses the whole project, once per process; a Spark takes 1 GB and twenty seconds.
SPARK: Final = "tests/spark"
TOGETHER: Final = {
    re.compile(r"from tests\.\S+ import .*\b(sources|product|pages)\b"): "tests/tidy",
    re.compile(r"^(def .*| {4}.*)\bspark: \w+[,)]", re.MULTILINE): SPARK,
}
# A Connect server takes six seconds of CPU to start, and the last test of the file kills it.
CONNECT_SERVER: Final = "tests/connectors/plugins/spark/test_sink_server.py"
# Units that stay whole however long they take.
UNDIVIDED: Final = frozenset({SPARK, CONNECT_SERVER})
SHARED_FIXTURE: Final = 'scope="module"'


@cache
def unit_of_file(path: str) -> str | None:
    """Return the unit that all tests of a file belong to; None where each may go its own way."""
    try:
        text = (ROOT / path).read_text(encoding="utf-8")
    except OSError:
        return None
    for sign, unit in TOGETHER.items():
        if sign.search(text):
            return unit
    return path if SHARED_FIXTURE in text else None


def plan(
    names: Sequence[str],
    seconds: Mapping[str, float],
    file_unit: Callable[[str], str | None] = unit_of_file,
) -> OrderedDict[str, list[str]]:
    """Divide tests into units, the longest first."""
    units: dict[str, list[str]] = {}
    totals: dict[str, float] = {}
    parts: dict[str, int] = {}
    for name in names:
        path = name.partition("::")[0]
        unit, took = file_unit(path), seconds[name]
        if unit is None:
            unit = name if took >= LONG_SECONDS else path
        part = f"{unit}#{parts.get(unit, 0)}"
        is_full = totals.get(part, 0.0) + took > UNIT_SECONDS and unit not in UNDIVIDED
        if is_full and part in units:
            parts[unit] = parts.get(unit, 0) + 1
            part = f"{unit}#{parts[unit]}"
        units.setdefault(part, []).append(name)
        totals[part] = totals.get(part, 0.0) + took
    longest_first = sorted(units, key=lambda unit: -totals[unit])
    return OrderedDict((unit, units[unit]) for unit in longest_first)


def with_guesses(names: Sequence[str], known: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of every test: measured, or guessed from its file."""
    guess = cache(durations.guess)
    return {name: known.get(name) or guess(name.partition("::")[0]) for name in names}


class Queue(OrderedDict[str, dict[str, bool]]):
    """Work that waits: taken in the order of a plan, whatever the order it came in."""

    def __init__(self) -> None:
        super().__init__()
        self.ranks: dict[str, int] = {}

    def popitem(self, last: bool = True) -> tuple[str, dict[str, bool]]:
        first = min(self, key=lambda unit: self.ranks.get(unit, 0))
        return first, self.pop(first)


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]
    """xdist's scheduler of units, with our units in our order."""

    def schedule(self) -> None:
        if self.collection is None:
            names = next(iter(self.registered_collections.values()))
            units = plan(names, with_guesses(names, durations.load()))
            self._unit_of = {name: unit for unit, members in units.items() for name in members}
            self.config.option.loadscopereorder = False
            self.workqueue = Queue()
            self.workqueue.ranks = {unit: rank for rank, unit in enumerate(units)}
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._unit_of[nodeid]
