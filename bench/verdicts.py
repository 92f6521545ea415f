"""The console's verdicts on groups, beside a judge that sees only wire calls, for an hour.

The groups are the demo's and ten that follow a script, so that each of those knows its own truth. A
contradiction is said when it begins, and fails the run at its end: a page that is green over a
problem, an alarm without one, or pages that contradict each other or themselves.
"""

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import click

from bench.broker_targets import ROOT
from bench.homes import BenchHome, running_home
from bench.measure import Cell, Table, Unmet
from bench.verdict_actors import play
from bench.verdict_calls import WireCalls
from bench.verdict_comparison import Comparison, Contradiction, Note, kind_of
from bench.verdict_judge import Look, Opinion, arrivals_of, remembered, ruling_of
from bench.verdict_pages import ConsolePages, Sight
from bench.verdict_scripts import SCRIPTS
from gateway.kafka.errors import KafkaFailure

BROKERS: Final = 3
MINUTES: Final = 60
WIRE_S: Final = 5.0
# Every so many looks at the wire, pages are read.
LOOKS_TO_PAGES: Final = 4
STOP_S: Final = 60.0
# What fits into a row; all words are said when a contradiction begins.
NAME_WIDTH: Final = 24
FIGURES_WIDTH: Final = 48
WORDS_WIDTH: Final = 72
DEMO: Final = "demo"


def run(minutes: int = MINUTES) -> Iterator[Table]:
    """`minutes` is the length of the scripts; graces do not shrink with it."""
    with running_home(brokers=BROKERS) as home:
        watch = Watch(home, 60.0 * minutes)
        with demo(home), actors(watch):
            watch.run()
    yield phases_table(watch.seen)
    yield contradictions_table(watch.seen.contradictions)
    yield agreement_table(watch)
    if found := len(watch.seen.contradictions):
        raise Unmet(f"{found} contradictions between pages, judge and scripts")


# --- the run ----------------------------------------------------------------------------------


class Watch:
    """Looks at wire and pages in turn until the time is up."""

    def __init__(self, home: BenchHome, seconds: float) -> None:
        status = home.status()
        self.seconds = seconds
        self.bootstrap = str(status["bootstrap"])
        self.seen = Comparison()
        self.errors: Counter[str] = Counter()
        self.is_over = threading.Event()
        self._pages = ConsolePages(str(status["console"]), home.folder)
        self._wire = WireCalls(self.bootstrap, now_s=self.now_s)
        self._history: dict[str, list[Look]] = {}
        self._scripts = {script.group: script for script in SCRIPTS}
        self._began_s = time.monotonic()
        self._cpu_s = time.process_time()

    def now_s(self) -> float:
        return time.monotonic() - self._began_s

    def share_at(self, monotonic_s: float) -> float:
        return (monotonic_s - self._began_s) / self.seconds

    def cpu_percent(self) -> float:
        """Return the CPU of this process, which plays the scripts, too, as a share of a core."""
        return 100 * (time.process_time() - self._cpu_s) / self.now_s()

    def run(self) -> None:
        """Look until the time is up, or until the actors have failed."""
        turn = 0
        while self.now_s() < self.seconds:
            turn += 1
            if self.is_over.wait(max(0.0, turn * WIRE_S - self.now_s())):
                return
            try:
                self._look()
                if turn % LOOKS_TO_PAGES == 0:
                    self._compare()
            except (KafkaFailure, OSError) as error:
                # One look that fails is a gap in the series; many are in the report.
                self.errors[f"{type(error).__name__}: {error}"] += 1

    def _look(self) -> None:
        for name, look in self._wire.look().items():
            self._history[name] = remembered(self._history.get(name, []), look)

    def _compare(self) -> None:
        sights = self._pages.look()
        at_s = self.now_s()
        begun = self.seen.add_counts(at_s, sights)
        for name, looks in sorted(self._history.items()):
            # What left the brokers' lists is not judged any more.
            if at_s - looks[-1].at_s <= LOOKS_TO_PAGES * WIRE_S:
                begun += self.seen.add(self._note(name, looks, at_s, sights.groups.get(name)))
        for one in begun:
            told = f"{one.group}: {one.kind} ({one.witness}): {one.figures} / {one.words}"
            click.echo(f"{clock(at_s)} {told}", err=True)

    def _note(self, name: str, looks: Sequence[Look], at_s: float, sight: Sight | None) -> Note:
        script = self._scripts.get(name)
        phase = None if script is None else script.phase_at(at_s / self.seconds)
        return Note(
            at_s=at_s,
            group=name,
            phase=DEMO if phase is None else phase.name,
            truth=Opinion.OPEN if phase is None else phase.truth,
            ruling=ruling_of(looks),
            arrivals=arrivals_of(looks),
            sight=sight or Sight(listed=None, own=None, in_need=None),
        )


@contextmanager
def demo(home: BenchHome) -> Iterator[None]:
    command = [str(ROOT / "samsa"), "demo", "--home", str(home.folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=sys.stderr) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(STOP_S)


@contextmanager
def actors(watch: Watch) -> Iterator[None]:
    """Play the scripts in a thread of their own, so that a slow page does not slow them."""

    def act() -> Counter[str]:
        try:
            return play(
                watch.bootstrap, SCRIPTS, share_at=watch.share_at, is_over=watch.is_over.is_set
            )
        finally:
            watch.is_over.set()

    with ThreadPoolExecutor(max_workers=1) as pool:
        acting = pool.submit(act)
        try:
            yield
        finally:
            watch.is_over.set()
            watch.errors += acting.result(STOP_S)


# --- the report -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One phase of a group, with all that was noted in it."""

    group: str
    phase: str
    notes: Sequence[Note]

    @property
    def truth(self) -> str:
        return "" if self.phase == DEMO else self.notes[0].truth.value

    def wrong_until(self) -> float | None:
        """Return when in this phase pages last had an alarm without a problem, or the reverse."""
        if self.notes[0].truth is Opinion.OPEN:
            return None
        is_problem = self.notes[0].truth is Opinion.PROBLEM
        wrong = [note.at_s for note in self.notes if note.sight.is_alarm != is_problem]
        return max(wrong, default=self.notes[0].at_s) - self.notes[0].at_s


def acts_of(notes: Iterable[Note]) -> list[Act]:
    """Return the phases of all groups, in the order of groups and time."""
    in_order = sorted(notes, key=lambda note: (note.group, note.at_s))
    # Not by name alone: a group is level before and after its problem.
    parts = groupby(in_order, key=lambda note: (note.group, note.phase))
    return [Act(group=group, phase=phase, notes=list(some)) for (group, phase), some in parts]


def phases_table(seen: Comparison) -> Table:
    return Table(
        title="what judge and pages say of each phase",
        columns=(
            *("group", "phase", "from", "to", "script", "judge", "page"),
            *("wrong until, s", "contradictions"),
        ),
        rows=[_phase_row(act, seen.contradictions) for act in acts_of(seen.notes)],
        notes=("wrong until: when in the phase alarm or no alarm last differed from the script",),
    )


def _phase_row(act: Act, contradictions: Iterable[Contradiction]) -> tuple[Cell, ...]:
    first_s, last_s = act.notes[0].at_s, act.notes[-1].at_s
    inside = [
        one for one in contradictions if one.group == act.group and first_s <= one.first_s <= last_s
    ]
    return (
        act.group,
        act.phase,
        clock(first_s),
        clock(last_s),
        act.truth,
        shares(note.ruling.opinion.value for note in act.notes),
        shares(note.sight.verdict for note in act.notes),
        act.wrong_until(),
        len(inside),
    )


def contradictions_table(found: Sequence[Contradiction]) -> Table:
    return Table(
        title="contradictions",
        columns=("from", "to", "looks", "group", "phase", "kind", "by", "the judge", "the page"),
        rows=[
            (
                *(clock(one.first_s), clock(one.last_s), one.looks, one.group),
                *(one.phase[:NAME_WIDTH], one.kind, one.witness),
                *(one.figures[:FIGURES_WIDTH], one.words[:WORDS_WIDTH]),
            )
            for one in found
        ],
    )


def agreement_table(watch: Watch) -> Table:
    notes = watch.seen.notes
    decided = [note for note in notes if note.ruling.opinion is not Opinion.OPEN]
    scripted = [note for note in decided if note.truth is not Opinion.OPEN]
    as_judged = [note for note in decided if kind_of(note.ruling.opinion, note.sight) is None]
    as_written = [note for note in scripted if note.ruling.opinion is note.truth]
    rows: list[tuple[Cell, ...]] = [
        ("groups and moments compared", len(notes), ""),
        ("… of which the judge decided", len(decided), percent(len(decided), len(notes))),
        ("pages agree with it", len(as_judged), percent(len(as_judged), len(decided))),
        ("scripted, and decided by the judge", len(scripted), ""),
        ("the judge agrees with scripts", len(as_written), percent(len(as_written), len(scripted))),
        ("contradictions beyond grace", len(watch.seen.contradictions), ""),
        ("CPU of judge, actors and reading pages, % of a core", watch.cpu_percent(), ""),
    ]
    errors = tuple(f"{count} × {error}" for error, count in watch.errors.most_common())
    return Table(title="agreement", columns=("what", "figure", "share"), rows=rows, notes=errors)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def shares(values: Iterable[str]) -> str:
    """Return how often each value occurs, as a text."""
    counts = Counter(values)
    total = counts.total()
    return ", ".join(f"{value} {percent(count, total)}" for value, count in counts.most_common())


def percent(count: int, total: int) -> str:
    return f"{100 * count / total:.0f} %" if total else "–"
