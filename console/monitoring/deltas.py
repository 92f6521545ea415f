"""Numbers the changes of tables of rows, for readers that fetch all rows once and then changes.

Pure. As in a broker's feed, a reader sends its run and number, and gets the steps since then, or
all rows if those steps are gone.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# A reader asks every second; keep steps of two minutes or some 20 MB of text, whichever is less.
MAX_STEPS: Final = 120
MAX_STEP_BYTES: Final = 20 * 1024 * 1024

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    text: str  # the changes, as a JSON object


class Deltas:
    """The writer's side: tables and their latest steps. Not thread-safe."""

    def __init__(self, run: str, tables: Iterable[str]) -> None:
        self.run = run
        self.number = 0
        self._tables: dict[str, dict[str, Row]] = {name: {} for name in tables}
        self._changed: dict[str, dict[str, Row]] = {name: {} for name in self._tables}
        self._gone: dict[str, dict[str, None]] = {name: {} for name in self._tables}
        self._steps: deque[Step] = deque()
        self._kept_bytes = 0
        self._whole: tuple[int, str] | None = None

    def put(self, table: str, key: str, row: Row) -> bool:
        """Set the values of a row; return whether they changed."""
        rows = self._tables[table]
        if rows.get(key) == row:
            return False
        rows[key] = row
        self._changed[table][key] = row
        self._gone[table].pop(key, None)
        return True

    def drop(self, table: str, key: str) -> None:
        if self._tables[table].pop(key, None) is not None:
            self._changed[table].pop(key, None)
            self._gone[table][key] = None

    def keep_only(self, table: str, keys: Mapping[str, Any]) -> None:
        """Drop rows whose keys are not among these."""
        for key in [key for key in self._tables[table] if key not in keys]:
            self.drop(table, key)

    def rows(self, table: str) -> Mapping[str, Row]:
        return self._tables[table]

    def close_step(self) -> None:
        """End a step if something has changed."""
        changed = {name: rows for name, rows in self._changed.items() if rows}
        gone = {name: list(keys) for name, keys in self._gone.items() if keys}
        if not changed and not gone:
            return
        self.number += 1
        text = json.dumps({"number": self.number, "rows": changed, "gone": gone})
        self._steps.append(Step(self.number, text))
        self._kept_bytes += len(text)
        while len(self._steps) > MAX_STEPS or self._kept_bytes > MAX_STEP_BYTES:
            self._kept_bytes -= len(self._steps.popleft().text)
        for rows in self._changed.values():
            rows.clear()
        for keys in self._gone.values():
            keys.clear()

    def since(self, run: str, number: int) -> Iterator[str]:
        """Yield JSON in pieces: the steps after a number, or all rows."""
        first = self._steps[0].number if self._steps else self.number + 1
        if run == self.run and first - 1 <= number <= self.number:
            yield f'"kind": "steps", "number": {self.number}, "steps": ['
            steps = [step.text for step in self._steps if step.number > number]
            for place, text in enumerate(steps):
                yield f", {text}" if place else text
            yield "]"
            return
        yield f'"kind": "whole", "number": {self.number}, "rows": {self._whole_text()}'

    def _whole_text(self) -> str:
        if self._whole is None or self._whole[0] != self.number:
            self._whole = (self.number, json.dumps(self._tables))
        return self._whole[1]


class Mirror:
    """The reader's side: `take` applies an answer, so that rows equal those of the writer."""

    def __init__(self) -> None:
        self.run = ""
        self.number = 0
        self.tables: dict[str, dict[str, Row]] = {}

    def take(self, told: Mapping[str, Any]) -> None:
        if told["kind"] == "whole":
            self.tables = {name: dict(rows) for name, rows in told["rows"].items()}
        else:
            for step in told["steps"]:
                for name, keys in step["gone"].items():
                    for key in keys:
                        self.tables[name].pop(key, None)
                for name, rows in step["rows"].items():
                    self.tables[name].update(rows)
        self.run, self.number = told["run"], told["number"]
