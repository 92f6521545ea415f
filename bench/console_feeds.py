"""Made-up feeds of three brokers, as their inspection ports tell them.

Which partitions move is drawn from a fixed seed, so two runs replay the same cluster.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

BROKERS: Final = 3
SEED: Final = 7
# How many members a group has, each with one partition.
MEMBERS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    topics: int
    partitions: int  # of a topic
    groups: int
    committed: int  # partitions of a group with committed offsets


class Feeds:
    """What each broker tells: a snapshot first, then a step each second."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._random = random.Random(SEED)
        self._ends: dict[tuple[int, int], int] = {}

    def snapshot(self, broker: int, now_ms: int) -> str:
        size = self._size
        rows = []
        for topic in range(size.topics):
            for index in range(size.partitions):
                if leader_of(topic, index) == broker:
                    self._ends[topic, index] = 1_000_000
                    rows.append(self._row(topic, index))
        own = [group for group in range(size.groups) if group % BROKERS == broker]
        commits = [
            self._commit(group, index, now_ms) for group in own for index in range(size.committed)
        ]
        groups = [[group_name(group), "consumer", "Stable", 3, MEMBERS, 1] for group in own]
        members = [
            [
                group_name(group),
                f"m-{group}-{n}",
                None,
                "app",
                "10.0.0.1",
                [[self._read(group), [n]]],
            ]
            for group in own
            for n in range(MEMBERS)
        ]
        topics = [[topic_name(topic), 10**9, 10**9] for topic in range(size.topics)]
        told = {"rows": rows, "groups": groups, "commits": commits, "members": members}
        head = self._head("snapshot", now_ms)
        return json.dumps({**head, **told, "topics": topics, "is_cut": False})

    def step(self, broker: int, moving: int, now_ms: int) -> str:
        size = self._size
        rows, commits, moved = [], [], set()
        for _place in range(moving // BROKERS):
            topic = self._random.randrange(size.topics)
            index = self._random.randrange(size.partitions)
            self._ends[topic, index] = self._ends.get((topic, index), 0) + 50
            rows.append(self._row(topic, index))
            moved.add(topic)
            group = self._random.randrange(size.groups // BROKERS) * BROKERS + broker
            commits.append(self._commit(group, self._random.randrange(size.committed), now_ms))
        topics = [[topic_name(topic), now_ms, now_ms] for topic in moved]
        step = {"number": 2, "ms": now_ms, "rows": rows, "commits": commits}
        return json.dumps({**self._head("steps", now_ms), "steps": [{**step, "topics": topics}]})

    def _head(self, kind: str, now_ms: int) -> Mapping[str, Any]:
        totals = {"connections": 100, "bytes_in_per_s": 1e6, "memory_bytes": 10**8}
        return {"run": "r", "number": 1, "ms": now_ms, "kind": kind, "totals": totals}

    def _row(self, topic: int, index: int) -> list[Any]:
        end = self._ends[topic, index]
        return [topic_name(topic), index, 0, end, end, end * 100]

    def _commit(self, group: int, index: int, now_ms: int) -> list[Any]:
        end = self._ends.get((group % self._size.topics, index), 1_000_000)
        lag = 10 * (group % 2)
        return [group_name(group), self._read(group), index, end - lag, 0, now_ms]

    def _read(self, group: int) -> str:
        return topic_name(group % self._size.topics)


def leader_of(topic: int, index: int) -> int:
    """Return the number, from 0, of the broker that leads a partition."""
    return (topic + index) % BROKERS


def topic_name(number: int) -> str:
    return f"topic-{number:05}"


def group_name(number: int) -> str:
    return f"group-{number:05}"
