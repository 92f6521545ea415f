"""Lists ten consumer groups that are played, what they do when, and whether that is a problem.

Pure data. A phase lasts until a share of the run; the truth of it is the operator's: records that
nothing will read, or that are read and not committed, are a problem, and all else is none.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from bench.verdict_judge import Opinion

FINE, OPEN, PROBLEM = Opinion.FINE, Opinion.OPEN, Opinion.PROBLEM
# More than ever arrives.
AMPLE: Final = 200.0


class Protocol(Enum):
    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """What the producer of a topic and the members of its group do. Rates are a second."""

    arrive: float = 6.0
    members: int = 1
    read: float = AMPLE
    # None never commits.
    commit_s: float | None = 2.0
    # Partitions that are read without a commit, and those whose next record is failed at.
    uncommitted: frozenset[int] = frozenset()
    failing: frozenset[int] = frozenset()
    is_paused: bool = False
    # Members are there for so long, and away for as long.
    turn_s: float | None = None
    # How often offsets are set from outside, to so many records before the end; None: the first.
    reset_s: float | None = None
    reset_back: int | None = None
    has_topic: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    name: str
    until: float  # as a share of the run
    truth: Opinion
    habit: Habit


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A group, with a topic of the same name."""

    group: str
    protocol: Protocol
    phases: tuple[Phase, ...]
    partitions: int = 2

    def phase_at(self, share: float) -> Phase:
        return next((one for one in self.phases if share < one.until), self.phases[-1])


def _phase(name: str, until: float, truth: Opinion, habit: Habit | None = None) -> Phase:
    return Phase(name=name, until=until, truth=truth, habit=habit or Habit())


def _level(until: float = 1.0) -> Phase:
    return _phase("level", until, FINE)


SCRIPTS: Final = (
    Script(
        group="falling-behind",
        protocol=Protocol.CONSUMER,
        phases=(
            _phase("level, commits in batches", 0.08, FINE, Habit(arrive=8, commit_s=20)),
            _phase("falls behind", 0.45, PROBLEM, Habit(arrive=8, read=5, commit_s=20)),
            _phase("catches up", 0.68, FINE, Habit(arrive=8, read=14, commit_s=20)),
            _phase("level, commits in batches", 1.0, FINE, Habit(arrive=8, commit_s=20)),
        ),
    ),
    Script(
        group="flapping",
        protocol=Protocol.CLASSIC,
        phases=(
            _phase(
                "two members come and go, none commits",
                0.6,
                PROBLEM,
                Habit(arrive=4, members=2, commit_s=None, turn_s=12),
            ),
            _level(),
        ),
    ),
    Script(
        group="never-committed",
        protocol=Protocol.CONSUMER,
        phases=(
            _phase("never commits", 0.65, PROBLEM, Habit(arrive=4, commit_s=None)),
            _level(),
        ),
    ),
    Script(
        group="partly-committed",
        protocol=Protocol.CLASSIC,
        partitions=4,
        phases=(
            _phase(
                "never commits 2 of 4 partitions",
                0.6,
                PROBLEM,
                Habit(arrive=8, uncommitted=frozenset({2, 3})),
            ),
            _level(),
        ),
    ),
    Script(
        group="reset-while-empty",
        protocol=Protocol.CONSUMER,
        phases=(
            _level(0.1),
            _phase(
                "empty, its offsets are set again and again",
                0.6,
                PROBLEM,
                Habit(members=0, reset_s=45, reset_back=30),
            ),
            _level(),
        ),
    ),
    Script(
        group="poisoned",
        protocol=Protocol.CONSUMER,
        phases=(
            _level(0.12),
            _phase("fails at a record of partition 0", 0.6, PROBLEM, Habit(failing=frozenset({0}))),
            _level(),
        ),
    ),
    Script(
        group="paused",
        protocol=Protocol.CLASSIC,
        phases=(
            _level(0.15),
            _phase("paused", 0.55, PROBLEM, Habit(is_paused=True)),
            _level(),
        ),
    ),
    Script(
        group="catching-up",
        protocol=Protocol.CLASSIC,
        phases=(
            _phase("backlog is written", 0.1, OPEN, Habit(arrive=60, members=0, reset_s=3600)),
            _phase("catches up", 0.75, FINE, Habit(read=17, commit_s=5)),
            _level(),
        ),
    ),
    Script(
        group="producer-stopped",
        protocol=Protocol.CONSUMER,
        phases=(
            _level(0.3),
            _phase("producer stopped", 0.5, FINE, Habit(arrive=0)),
            _phase("producer stopped, members left", 0.65, FINE, Habit(arrive=0, members=0)),
            _level(),
        ),
    ),
    Script(
        group="topic-deleted",
        protocol=Protocol.CLASSIC,
        phases=(
            _level(0.35),
            _phase("topic deleted", 0.7, FINE, Habit(arrive=0, has_topic=False)),
            _phase("topic made again", 1.0, FINE),
        ),
    ),
)
