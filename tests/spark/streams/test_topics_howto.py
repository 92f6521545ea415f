"""The page on streams says what works: its programs run, against a home as well."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.extras import requires
from tests.suite.services import shared_home
from tests.tidy.project import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "howto" / "transform-streams.md").read_text(encoding="utf-8")
BUILD, TRY, RUN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN = re.findall(r"^(?:key|value) +(\{.*\})$", PAGE, re.MULTILINE)
# As long as a busy machine may take; nothing waits for it otherwise.
WAIT_SECONDS = 120
VALUES = [
    b'{"country":"fr","amount":2.5,"created_at":"2026-01-01T10:00:00Z"}',
    b'{"country":"fr","amount":1.5,"created_at":"2026-01-01T10:04:59Z"}',
    b"no JSON",
    b'{"country":"de","amount":1.0,"created_at":"2026-01-01T10:06:00Z"}',
]


def test_what_the_page_tries_in_memory_writes_what_it_shows() -> None:
    names: dict[str, Any] = {}

    exec(BUILD + TRY, names)  # noqa: S102 (the page's own)

    written = names["written"]
    assert [written.key.decode(), written.value.decode()] == SHOWN
    assert len(names["driver"].bad_records) == 1


@requires("java", "spark")
def test_what_the_page_runs_on_spark_writes_the_same(
    spark: Any, unique: Callable[[str], str], tmp_path: Path
) -> None:
    bootstrap = shared_home().bootstrap
    topics = {name: unique(name) for name in ("orders", "orders-bad", "country-totals")}
    program = BUILD + RUN
    for name, own in topics.items():
        program = program.replace(f'"{name}"', f'"{own}"')
    program = program.replace("127.0.0.1:9092", bootstrap)
    program = program.replace("/data/checkpoints/totals", str(tmp_path / "totals"))
    program = program.replace('session(Path(".samsa"))', "spark")
    create(bootstrap, *topics.values())
    fill(bootstrap, topics["orders"], VALUES)

    exec(program, {"spark": spark})  # noqa: S102 (the page's own)

    (first, *_) = totals = read(bootstrap, topics["country-totals"], 3)
    # Once by the run over a range, which closes all windows, and once by the stream.
    assert sorted(json.loads(value)["country"] for _, value in totals) == ["de", "fr", "fr"]
    assert [key for key, _ in totals].count(SHOWN[0].encode()) == 2
    assert json.loads(first[1])["window_end"] - json.loads(first[1])["window_start"] == 300_000
    assert [value for _, value in read(bootstrap, topics["orders-bad"], 2)] == [b"no JSON"] * 2


def create(bootstrap: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        made.result()


def fill(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value=value)
    assert producer.flush(WAIT_SECONDS) == 0


def read(bootstrap: str, topic: str, count: int) -> list[tuple[bytes, bytes]]:
    """Return all records of a topic, of which there have to be so many."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    try:
        place = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=WAIT_SECONDS)
        assert end == count
        consumer.assign([place])
        records = consumer.consume(count, timeout=WAIT_SECONDS)
    finally:
        consumer.close()
    return [(record.key() or b"", record.value() or b"") for record in records]
