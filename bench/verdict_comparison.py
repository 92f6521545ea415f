"""Compares what pages say of groups with what a judge found and what the groups' scripts say.

Pure. Each change has its grace, since neither side can know of it at once; what lasts longer is a
contradiction. Words of one page that exclude each other have no grace.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from bench.verdict_judge import Opinion, Ruling
from bench.verdict_pages import Mark, Sight, Sights

JUDGE, SCRIPT, PAGE = "judge", "script", "page"
# How long a page may take to say a problem, and to say its end. The judge has waited already.
GRACE_S: Final = {
    (JUDGE, Opinion.PROBLEM): 120.0,
    (JUDGE, Opinion.FINE): 180.0,
    (SCRIPT, Opinion.PROBLEM): 300.0,
    (SCRIPT, Opinion.FINE): 180.0,
}
# How long they must differ: the page may know the end of a problem before the judge, as well.
LASTS_S: Final = {(JUDGE, Opinion.PROBLEM): 60.0}
GREEN: Final = "green over a problem"
SILENT: Final = "no verdict over a problem"
ALARM: Final = "alarm without a problem"
WORDS: Final = "words exclude each other"
DIFFER: Final = "pages differ"
NUMBER: Final = "a number is not so"
# What a page says of a topic, and by how much it may differ from the rates that were seen.
ARRIVE: Final = re.compile(r"In (\S+) it reads [\d.,]+ records/s while ([\d.,]+) arrive")
ARRIVE_SHARE: Final = 0.5
ARRIVE_RECORDS: Final = 1.0
# Pages are read one after the other, and a rate is of some minute: twice in a row is no chance.
LOOKS_APART: Final = 2
NEVER_GREEN: Final = re.compile(
    r"does not catch up|falls? behind|falling behind|never committed|gets no further|"
    r"commits no more|losing records|loses records",
    re.IGNORECASE,
)
NEVER_ALARM: Final = re.compile(
    r"keeps up|caught up(?! in)|nothing waits|no records? waits?", re.IGNORECASE
)
# Of each pair, a page says one at most.
PAIRS: Final = (
    (re.compile("records arrive"), re.compile("while 0 arrive")),
    (
        re.compile("does not catch up"),
        re.compile("keeps up|caught up in|catches up", re.IGNORECASE),
    ),
    (re.compile("no members"), re.compile("keeps up|it has [1-9]", re.IGNORECASE)),
)
# The group of a contradiction that concerns all of them.
ALL: Final = "(all)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One group at one moment, seen by all; a group of the demo has no script."""

    at_s: float
    group: str
    phase: str
    truth: Opinion
    ruling: Ruling
    sight: Sight
    # The lowest and highest rate of late, of each topic.
    arrivals: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Contradiction:
    kind: str
    witness: str
    group: str
    phase: str
    first_s: float
    last_s: float
    looks: int
    figures: str
    words: str


@dataclass(slots=True, kw_only=True)
class Comparison:
    """All that was noted. `ended` and `lasting` are contradictions."""

    notes: list[Note] = field(default_factory=list)
    ended: list[Contradiction] = field(default_factory=list)
    lasting: dict[tuple[str, str, str], Contradiction] = field(default_factory=dict)
    # Per witness and group: its opinion, and since when it has it.
    _since: dict[tuple[str, str], tuple[Opinion, float]] = field(default_factory=dict)
    _differing_since: dict[tuple[str, str], float] = field(default_factory=dict)
    _apart: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def contradictions(self) -> list[Contradiction]:
        found = [*self.ended, *self.lasting.values()]
        return sorted(found, key=lambda one: (one.first_s, one.group, one.kind))

    def add(self, note: Note) -> list[Contradiction]:
        """Note one group; return the contradictions that begin here."""
        self.notes.append(note)
        found = {
            (kind, witness): words
            for kind, witness, words in (
                *self._against(JUDGE, note, note.ruling.opinion),
                *self._against(SCRIPT, note, note.truth),
                *((WORDS, PAGE, words) for words in exclusions(note.sight)),
                *((DIFFER, PAGE, words) for words in self._differing(note.group, note.sight)),
                *((NUMBER, PAGE, words) for words in self._misstating(note)),
            )
        }
        return self._kept(note, found)

    def add_counts(self, at_s: float, sights: Sights) -> list[Contradiction]:
        """Compare the badge of the navigation with the list of groups."""
        words = f"the badge says {sights.badge}, the list has {sights.alarms}"
        apart = self._apart_for(DIFFER, ALL, sights.badge != sights.alarms)
        note = Note(
            at_s=at_s,
            group=ALL,
            phase="",
            truth=Opinion.OPEN,
            ruling=Ruling(opinion=Opinion.OPEN, reason=""),
            sight=Sight(listed=None, own=None, in_need=None),
        )
        return self._kept(note, {(DIFFER, PAGE): words} if apart else {})

    def _against(
        self, witness: str, note: Note, opinion: Opinion
    ) -> Iterator[tuple[str, str, str]]:
        """Yield the contradiction between a witness and the pages, once grace is over."""
        before, since_s = self._since.get((witness, note.group), (None, note.at_s))
        if before is not opinion:
            since_s = note.at_s
            self._since[witness, note.group] = (opinion, since_s)
        kind = kind_of(opinion, note.sight)
        if kind is None:
            self._differing_since.pop((witness, note.group), None)
            return
        differing_s = note.at_s - self._differing_since.setdefault((witness, note.group), note.at_s)
        lasts_s = LASTS_S.get((witness, opinion), 0.0)
        if not note.sight.marks and not differing_s:
            # A broker removes a group that is empty for a moment, and a page may see just that.
            return
        if note.at_s - since_s >= GRACE_S[witness, opinion] and differing_s >= lasts_s:
            yield kind, witness, note.sight.words

    def _differing(self, group: str, sight: Sight) -> Iterator[str]:
        colours = {mark.colour for mark in sight.marks}
        if self._apart_for(DIFFER, group, len(colours) > 1 or sight.listed is None):
            yield " | ".join(f"{mark.colour} {mark.verdict}" for mark in sight.marks)

    def _misstating(self, note: Note) -> Iterator[str]:
        words = misstated(note)
        if self._apart_for(NUMBER, note.group, words is not None) and words is not None:
            yield words

    def _apart_for(self, kind: str, group: str, is_apart: bool) -> bool:
        """Tell whether it was so for some looks in a row."""
        self._apart[kind, group] = self._apart.get((kind, group), 0) + 1 if is_apart else 0
        return self._apart[kind, group] >= LOOKS_APART

    def _kept(self, note: Note, found: dict[tuple[str, str], str]) -> list[Contradiction]:
        """Prolong those that last, end those that do not, and return the new ones."""
        for key in [key for key in self.lasting if key[0] == note.group]:
            if key[1:] not in found:
                self.ended.append(self.lasting.pop(key))
        new = []
        for (kind, witness), words in found.items():
            if (known := self.lasting.get((note.group, kind, witness))) is not None:
                known.last_s, known.looks = note.at_s, known.looks + 1
                continue
            begun = Contradiction(
                kind=kind,
                witness=witness,
                group=note.group,
                phase=note.phase,
                first_s=note.at_s,
                last_s=note.at_s,
                looks=1,
                figures=note.ruling.reason,
                words=words,
            )
            self.lasting[note.group, kind, witness] = begun
            new.append(begun)
        return new


def kind_of(opinion: Opinion, sight: Sight) -> str | None:
    """Return how pages contradict an opinion."""
    match opinion:
        case Opinion.PROBLEM if sight.is_green:
            return GREEN
        case Opinion.PROBLEM if not sight.is_alarm:
            return SILENT
        case Opinion.FINE if sight.is_alarm:
            return ALARM
        case _:
            return None


def exclusions(sight: Sight) -> Iterator[str]:
    """Yield words of a page that exclude the colour beside them."""
    for mark in sight.marks:
        if (words := excluded(mark)) is not None:
            yield words
    if sight.own is not None and sight.own.colour == "ok":
        yield from (f"OK above, but below: {one.words}" for one in sight.parts if is_bad(one))


def excluded(mark: Mark) -> str | None:
    never = {"ok": NEVER_GREEN, "bad": NEVER_ALARM}.get(mark.colour)
    found = never and never.search(mark.words)
    if found:
        return f"“{found[0]}” in {mark.colour}: {mark.words}"
    for one, other in PAIRS:
        here, there = one.search(mark.words), other.search(mark.words)
        if here and there:
            return f"“{here[0]}” beside “{there[0]}”: {mark.words}"
    return None


def misstated(note: Note) -> str | None:
    """Return the rate of arrivals on a group's page, if no minute of late had it."""
    told = ARRIVE.search(note.sight.words)
    if told is None or told[1] not in note.arrivals:
        return None
    least, most = note.arrivals[told[1]]
    rate = float(told[2].replace(",", ""))
    low, high = least * (1 - ARRIVE_SHARE), most * (1 + ARRIVE_SHARE)
    is_near = low - ARRIVE_RECORDS <= rate <= high + ARRIVE_RECORDS
    return None if is_near else f"{told[0]}; it was {least:.1f} to {most:.1f}"


def is_bad(mark: Mark) -> bool:
    return mark.colour == "bad"
