"""Reads dead letters of a connector for its pages, and the runs that send them again."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from connectors import dead_letters, redrives
from connectors.dead_letters import Causes, CauseShown, Cluster, Look, Shown
from connectors.redrives import RunInfo
from console.group_changes.desk import bootstrap_of
from console.queries.lag import Mark
from console.queries.reading import moment
from gateway.access.turns import Turns
from gateway.kafka.connection import Connection, Deadline

# A page has to answer within five seconds, including the wait for a turn and all requests.
TURN_WAIT_S: Final = 0.5
ASK_S: Final = 4.0
# Each holds a thread and its read-ahead buffer.
TURNS: Final = Turns(places=3, queue=6, wait_s=TURN_WAIT_S, what="dead letters are being read")
CLIENT_ID: Final = "samsa-console"
# The stage at which a record failed: Connect's names, and their meaning.
STAGES: Final[Mapping[str, str]] = {
    "KEY_CONVERTER": "reading the key",
    "VALUE_CONVERTER": "reading the value",
    "HEADER_CONVERTER": "reading the headers",
    "TRANSFORMATION": "a transform",
    "TASK_PUT": "writing to the target",
}
RUN_MARKS: Final[Mapping[str, Mark]] = {
    "RUNNING": Mark(state="ok", word="Sending", meaning="A worker sends, batch by batch."),
    "DONE": Mark(state="ok", word="Done", meaning="Every planned letter was processed."),
    "STOPPED": Mark(state="stale", word="Stopped", meaning="A user stopped it; it can be resumed."),
    "FAILED": Mark(state="bad", word="Failed", meaning="It needs attention; see the reason."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterRow:
    """One letter, with the timestamp of its record."""

    letter: Shown
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseRow:
    """The letters of one cause, and their share of those that were counted."""

    cause: CauseShown
    share: float
    failed_while: str
    first_at: datetime | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    run: RunInfo
    mark: Mark
    unsent: tuple[tuple[str, int], ...]


@contextmanager
def cluster_of(cluster_id: str, *, user: str = "") -> Iterator[Cluster]:
    """Take a turn and connect to the brokers, which note for which user a change is made.

    Raises TooBusy and KafkaFailure.
    """
    with TURNS.turn():
        client_id = f"{CLIENT_ID} for {user}" if user else CLIENT_ID
        connection = Connection(
            bootstrap=bootstrap_of(cluster_id), client_id=client_id, until=Deadline(ASK_S)
        )
        yield dead_letters.cluster_at(connection)


def rows_of(look: Look) -> tuple[LetterRow, ...]:
    return tuple(LetterRow(letter=one, at=_at(one.timestamp_ms)) for one in look.rows)


def cause_rows_of(causes: Causes) -> tuple[CauseRow, ...]:
    return tuple(
        CauseRow(
            cause=one,
            share=one.letters / causes.counted,
            failed_while=STAGES.get(one.stage.upper(), one.stage),
            first_at=_at(one.first_ms),
            last_at=_at(one.last_ms),
        )
        for one in causes.rows
    )


def runs_of(cluster_id: str, name: str) -> tuple[RunRow, ...]:
    return tuple(
        RunRow(
            run=one,
            mark=RUN_MARKS[one.state],
            unsent=tuple((reason.words, count) for reason, count in one.unsent.items()),
        )
        for one in redrives.runs(cluster_id, name)
    )


def _at(time_ms: int | None) -> datetime | None:
    return None if time_ms is None else moment(time_ms / 1000)
