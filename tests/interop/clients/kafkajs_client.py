"""kafkajs as a client of the matrix: it writes, and reads in a group, as its consumer wants it."""

import base64
import json
import os
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from brokers.protocol.records.compression import Compression
from tests.interop.clients.client import SECONDS
from tests.interop.clients.records import Row, Sent, Trait
from tests.suite.extras import KAFKAJS

PROGRAMS = Path(__file__).with_name("kafkajs")


class KafkaJsClient:
    name = "kafkajs"
    needs: tuple[str, ...] = ("kafkajs",)
    cannot_write: Mapping[Trait, str] = {
        Trait.NULL_HEADER: "its encoder makes a buffer of every header's content",
    }

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        codec: Compression,
        *,
        idempotent: bool,
    ) -> None:
        how = {
            "bootstrap": bootstrap,
            "topic": topic,
            "codec": codec.name.lower(),
            "idempotent": idempotent,
        }
        lines = [json.dumps(each) for each in (how, *map(_plain, records))]
        _run("writer.js", lines="\n".join(lines))

    def read_until(self, bootstrap: str, topic: str, *, end: bytes, count: int) -> list[Row]:
        """Read a topic from its beginning to the `count`-th record of the key `end`."""
        what = {
            "bootstrap": bootstrap,
            "topic": topic,
            "group": f"readers-{uuid.uuid4()}",
            "end": end.decode(),
            "count": count,
        }
        return [_row(json.loads(line)) for line in _run("reader.js", json.dumps(what)).splitlines()]


def _run(program: str, *arguments: str, lines: str = "") -> str:
    done = subprocess.run(
        ["node", str(PROGRAMS / program), *arguments],
        env={**os.environ, "NODE_PATH": KAFKAJS.search_path},
        input=lines,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _row(told: Sequence[Any]) -> Row:
    partition, offset, timestamp, *contents = told
    key, value = (None if text is None else base64.b64decode(text) for text in contents)
    return Row(partition, offset, timestamp, key, value, ())


def _plain(sent: Sent) -> list[object]:
    headers = [[name, _text(content)] for name, content in sent.headers]
    return [sent.partition, sent.timestamp, _text(sent.key), _text(sent.value), headers]


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
