"""What keeps a task from its work, stored beside its figures: retries, and records that it loses.

Pure; `tasks` stores it every few seconds. The names are those of the stored JSON.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from connectors.runtime import figures as counted
from connectors.runtime.causes import OTHERS, Cause
from connectors.runtime.figures import Figures

RETRYING: Final = "retrying"
LOSSES: Final = "losses"
# Under which config the task has reached its other side.
WORKED: Final = "worked_with"
CONDITION: Final = (RETRYING, LOSSES, WORKED)
MINUTE_MS: Final = 60_000
# A task loses records while it has lost one within the last minutes in which it read something.
# Idle minutes do not count: they mend nothing. A restart, or a change of the config, starts over.
WINDOW_MINUTES: Final = 10
# How long a task retries that has never reached its other side: by then a server that starts beside
# it is there, and a wrong address is not taken for a server that is away. Later there is no limit.
FIRST_SUCCESS_S: Final = 300.0
# The most common ones are what an operator needs; the others are counted together.
MAX_CAUSES: Final = 5
# From this share of the records on, the connector does not do its work.
MOST: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """Failures in a row: since when, how many, the last one's message, and the next attempt."""

    since_ms: int
    tries: int
    reason: str
    next_ms: int

    @classmethod
    def of(cls, told: Mapping[str, Any] | None) -> "Retrying | None":
        return None if told is None else cls(**told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """How many records were lost for one cause."""

    text: str
    advice: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Losing:
    """Records that tasks skipped because of errors, in their last minutes of reading."""

    since_ms: int
    last_ms: int
    read: int
    lost: int
    # Of all that were lost since `since_ms`: those that are kept as dead letters.
    lost_since: int
    dead_since: int
    causes: tuple[Lost, ...]

    @property
    def is_most(self) -> bool:
        return self.lost >= MOST * self.read

    @property
    def dropped_since(self) -> int:
        """Return how many are kept nowhere."""
        return max(0, self.lost_since - self.dead_since)


class Condition:
    """The condition of a running task: that before its slice, and what the slice adds.

    `era` changes when the task is restarted or given another config, `config` only with its config.
    """

    def __init__(
        self,
        before: Mapping[str, Any],
        *,
        retries: int,
        era: str,
        config: str,
        keeps_letters: bool = False,
    ) -> None:
        # A restart forgets failures.
        self.retrying = Retrying.of(before.get(RETRYING)) if retries else None
        told = before.get(LOSSES) or {}
        self._era, self._config, self._keeps_letters = era, config, keeps_letters
        self._losses: dict[str, Any] = told if told.get("era") == era else {}
        # Former releases did not store this, and a task that has committed has worked.
        former = config if before.get(counted.COMMITTED) else None
        self._worked_with: str | None = before.get(WORKED, former)
        self._seen = dict.fromkeys((counted.READ, counted.LOST, counted.DEAD), 0)
        self._causes: Mapping[Cause, int] = {}

    @property
    def has_worked(self) -> bool:
        return self._worked_with == self._config

    def after(self, figures: Figures, now_ms: int) -> dict[str, Any]:
        """Return what to store, after the slice has come as far as its figures say."""
        if figures.has_worked:
            self._worked_with = self._config
        self._losses = self._with_losses(figures, now_ms)
        retrying = figures.retrying
        return {
            **({} if retrying is None else {RETRYING: asdict(retrying)}),
            **({LOSSES: self._losses} if self._losses else {}),
            **({WORKED: self._worked_with} if self._worked_with else {}),
        }

    def _with_losses(self, figures: Figures, now_ms: int) -> dict[str, Any]:
        counts, causes = figures.counts(), figures.causes()
        read, lost, dead = (counts[name] - before for name, before in self._seen.items())
        if not (read or lost or dead):
            return self._losses
        new_causes = {one: count - self._causes.get(one, 0) for one, count in causes.items()}
        self._seen = {name: counts[name] for name in self._seen}
        self._causes = causes
        minutes = _minutes(self._losses.get("minutes", []), now_ms // MINUTE_MS, read, lost)
        if not sum(lost for _, _, lost in minutes):
            return {"era": self._era, "minutes": minutes}
        return {
            "era": self._era,
            "minutes": minutes,
            "since_ms": self._losses.get("since_ms", now_ms),
            "last_ms": now_ms if lost else self._losses.get("last_ms", now_ms),
            "lost": self._losses.get("lost", 0) + lost,
            # A task commits what it lost once the letters are written, and counts these only then:
            # what is lost between the two is not kept nowhere.
            "dead": self._losses.get("dead", 0) + (lost if self._keeps_letters else dead),
            "causes": _causes(self._losses.get("causes", []), new_causes),
        }


def losing(told: Mapping[str, Any], *, era: str) -> Losing | None:
    """Return what a stored condition says about lost records; None if none is lost."""
    found = told.get(LOSSES) or {}
    if found.get("era") != era or "since_ms" not in found:
        return None
    return Losing(
        since_ms=found["since_ms"],
        last_ms=found["last_ms"],
        read=_read_in(found),
        lost=sum(lost for _, _, lost in found["minutes"]),
        lost_since=found["lost"],
        dead_since=found["dead"],
        causes=tuple(
            Lost(text=text, advice=advice, count=n) for text, advice, n in found["causes"]
        ),
    )


def read_lately(told: Mapping[str, Any], *, era: str) -> int:
    """Return how many records a task has read in its last minutes of reading."""
    found = told.get(LOSSES) or {}
    return _read_in(found) if found.get("era") == era else 0


def _read_in(found: Mapping[str, Any]) -> int:
    return sum(read for _, read, _ in found["minutes"])


def era_of(generation: int, restarts: int) -> str:
    return f"{generation}/{restarts}"


def _minutes(before: list[list[int]], minute: int, read: int, lost: int) -> list[list[int]]:
    """Return the counts of the last minutes with records, the newest last."""
    if before and before[-1][0] == minute:
        *before, (_, read_before, lost_before) = before
        read, lost = read + read_before, lost + lost_before
    return [*before, [minute, read, lost]][-WINDOW_MINUTES:]


def _causes(before: list[list[Any]], new: Mapping[Cause, int]) -> list[list[Any]]:
    """Return causes with their counts, the most common first; rare ones are counted together."""
    counts: dict[Cause, int] = {Cause(text=one[0], advice=one[1]): one[2] for one in before}
    for cause, count in new.items():
        if count:
            counts[cause] = counts.get(cause, 0) + count
    others = counts.pop(OTHERS, 0)
    ordered = sorted(counts.items(), key=lambda one: -one[1])
    others += sum(count for _, count in ordered[MAX_CAUSES:])
    listed = [[cause.text, cause.advice, count] for cause, count in ordered[:MAX_CAUSES]]
    return [*listed, [OTHERS.text, OTHERS.advice, others]] if others else listed
