"""A group with topics on a running broker, for pages that change groups: every value defaulted."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import urlencode

from django.test import Client

from brokers.controlplane import models
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.groups import Groups
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic, Place
from tests.console import cluster_rows

# Records of each partition, a second apart from FIRST_MS on; the last partition is empty.
RECORDS = (10, 5, 0)
FIRST_MS = 1_769_860_800_000  # 2026-01-31T12:00:00Z
CELL = re.compile(r"<[^>]+>")
ROW = re.compile(r'<tr><th scope="row" class="long">(.*?)</tr>', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One topic with records, a name for a group, and doors to both."""

    bootstrap: str
    topic: str
    group: str

    @property
    def connection(self) -> Connection:
        return Connection(bootstrap=self.bootstrap)

    def commit(self, *offsets: int, topic: str = "") -> None:
        """Commit an offset for each partition from 0 on."""
        places = {self.place(index, topic): offset for index, offset in enumerate(offsets)}
        Groups(self.connection).commit(self.group, places)

    def committed(self) -> dict[Place, int]:
        return Groups(self.connection).offsets([self.group])[self.group]

    def place(self, partition: int, topic: str = "") -> Place:
        return Place(topic=topic or self.topic, partition=partition)

    def path(self, page: str, **query: str) -> str:
        told = {"name": self.group, "cluster": cluster_rows.CLUSTER_ID, **query}
        return f"/group/{page}?{urlencode(told)}"

    def preview(self, browser: Client, mode: str, **fields: Any) -> Any:
        given = {"mode": mode, "scope": "all", "zone": "UTC", **fields}
        return browser.post(self.path("reset"), given)


def make_topic(
    bootstrap: str,
    name: str,
    records: tuple[int, ...] = RECORDS,
    *,
    first_ms: int = FIRST_MS,
    apart_ms: int = 1000,
) -> str:
    """Create a topic with so many records in each partition."""
    connection = Connection(bootstrap=bootstrap)
    # The records are old enough for retention to take them while a test looks.
    forever = {"retention.ms": "-1"}
    Admin(connection).create([NewTopic(name=name, partitions=len(records), configs=forever)])
    producer = TopicWriter(connection, name)
    for partition, count in enumerate(records):
        for number in range(count):
            written_ms = first_ms + number * apart_ms
            producer.send(NewRecord(value=b"x", partition=partition, timestamp_ms=written_ms))
    producer.flush()
    return name


def cluster_at(bootstrap: str) -> models.Cluster:
    """Make the rows of a cluster whose one broker is where a test's broker is."""
    made = cluster_rows.cluster()
    cluster_rows.broker(made, 1)
    host, _, port = bootstrap.split(",", maxsplit=1)[0].rpartition(":")
    models.Broker.objects.update(host=host, port=int(port))
    return made


def shown(answer: Any) -> dict[Place, tuple[int | None, int | None]]:
    """Return the partitions of a preview with what is committed before and after."""
    rows = {}
    for row in ROW.findall(answer.content.decode()):
        topic, partition, before, after = [
            unescape(CELL.sub("", cell)) for cell in re.split(r"</t[hd]>", row)[:4]
        ]
        rows[Place(topic=topic, partition=int(partition))] = (_number(before), _number(after))
    return rows


def after(rows: Mapping[Place, tuple[int | None, int | None]]) -> dict[Place, int]:
    return {place: offset for place, (_, offset) in rows.items() if offset is not None}


def _number(text: str) -> int | None:
    return None if text == "none" else int(text)
