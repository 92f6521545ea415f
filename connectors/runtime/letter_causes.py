"""Counts dead letters by cause, in bounded memory.

Pure. Texts of letters are not masked here.
"""

from dataclasses import dataclass
from typing import Final

from connectors.runtime.letters import MAX_READ_CHARS, Letter, SharedCause

# Causes that are counted; letters of further ones are counted together. A broken connector has a
# few, and a page shows no more.
MAX_CAUSES: Final = 50


@dataclass(slots=True, kw_only=True)
class CauseCount:
    """How many letters have a cause; the times are those of their records."""

    cause: SharedCause
    # The place and the message of the newest letter, as an example.
    place: tuple[int, int]
    message: str
    count: int = 0
    first_ms: int | None = None
    last_ms: int | None = None


class CauseTally:
    """The counts so far."""

    def __init__(self) -> None:
        self._counts: dict[str, CauseCount] = {}
        self.counted = 0
        # Letters of causes beyond the limit.
        self.others = 0

    def add(self, letter: Letter) -> None:
        self.counted += 1
        cause = letter.shared_cause
        found = self._counts.get(cause.id)
        if found is None:
            if len(self._counts) >= MAX_CAUSES:
                self.others += 1
                return
            found = CauseCount(cause=cause, place=letter.place, message=_message(letter))
            self._counts[cause.id] = found
        found.count += 1
        if letter.record.offset > found.place[1]:
            found.place, found.message = letter.place, _message(letter)
        at_ms = letter.record.timestamp_ms
        if at_ms is not None:
            found.first_ms = at_ms if found.first_ms is None else min(found.first_ms, at_ms)
            found.last_ms = at_ms if found.last_ms is None else max(found.last_ms, at_ms)

    def counts(self) -> list[CauseCount]:
        """Return the causes, the most common first."""
        return sorted(self._counts.values(), key=lambda one: (-one.count, one.cause.id))


def _message(letter: Letter) -> str:
    return letter.cause.message[:MAX_READ_CHARS]
