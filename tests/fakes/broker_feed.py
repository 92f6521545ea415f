"""A broker's feed without the broker: a test changes what it tells, and reads real documents.

`OldFeed` tells what a release tells that knows nothing of members, clients and topics.
"""

import json
from collections.abc import Sequence
from typing import Any

NOW_MS = 1_700_000_000_000

# What makes a row the same one, by table: its first columns.
KEYS = {"rows": 2, "groups": 1, "commits": 3, "members": 2, "topics": 1, "clients": 1, "apis": 1}
# What a step calls the rows that are gone.
GONE = {
    "rows": "gone",
    "groups": "groups_gone",
    "commits": "commits_gone",
    "members": "gone_members",
    "clients": "gone_clients",
    "topics": "gone_topics",
}
OF_OLD = ("rows", "groups", "commits")
# Written as a bare name where it is gone, though its key has one column only.
BARE = {"groups", "clients", "topics"}


class Feed:
    """Tells a snapshot first and steps after that, as long as its run stays the same."""

    tables: Sequence[str] = tuple(KEYS)

    def __init__(self, run: str = "run-1") -> None:
        self.run = run
        self.number = 0
        self.ms = NOW_MS
        self.totals: dict[str, Any] = {"connections": 1, "bytes_in_per_s": 10.0}
        self._now: dict[str, dict[Any, list[Any]]] = {table: {} for table in self.tables}
        self._told: dict[str, dict[Any, list[Any]]] | None = None

    def partition(self, topic: str, index: int, *, start: int = 0, end: int, size: int = 0) -> None:
        self.put("rows", [topic, index, start, end, end, size])

    def group(self, name: str, *, state: str = "Stable", members: int = 1) -> None:
        self.put("groups", [name, "classic", state, 1, members, 0])

    def commit(
        self, group: str, topic: str, index: int, offset: int, *, at_ms: int = NOW_MS
    ) -> None:
        if (group,) not in self._now["groups"]:
            self.group(group)
        self.put("commits", [group, topic, index, offset, 0, at_ms])

    def put(self, table: str, row: list[Any]) -> None:
        self._now[table][tuple(row[: KEYS[table]])] = row

    def drop(self, table: str, *key: Any) -> None:
        del self._now[table][key]

    def restart(self) -> None:
        """Begin another run, as a broker does that was started again."""
        self.run += "+"
        self._told = None

    def tell(self) -> dict[str, Any]:
        """Return the next answer, as a reader sees it."""
        told, self._told = self._told, {name: dict(rows) for name, rows in self._now.items()}
        self.number += 1
        head = {"run": self.run, "number": self.number, "ms": self.ms, "totals": self.totals}
        if told is None:
            tables = {name: list(rows.values()) for name, rows in self._now.items()}
            answer = {**head, "kind": "snapshot", **tables, "is_cut": False}
        else:
            answer = {**head, "kind": "steps", "steps": [self._step(told)]}
        read: dict[str, Any] = json.loads(json.dumps(answer))
        return read

    def _step(self, told: dict[str, dict[Any, list[Any]]]) -> dict[str, Any]:
        step: dict[str, Any] = {"number": self.number, "ms": self.ms, "totals": self.totals}
        for table, rows in self._now.items():
            before = told[table]
            step[table] = [row for key, row in rows.items() if before.get(key) != row]
            if table in GONE:
                keys = [key for key in before if key not in rows]
                step[GONE[table]] = [key[0] if table in BARE else key for key in keys]
        return step


class OldFeed(Feed):
    tables = OF_OLD
