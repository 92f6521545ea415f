"""kafkajs as a client of the matrix: it writes only, because its consumer needs a group."""

import base64
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from brokers.protocol.records.compression import Compression
from cli.extras import KAFKAJS
from tests.interop.clients.client import SECONDS
from tests.interop.clients.records import Sent, Trait

PROGRAM = Path(__file__).with_name("kafkajs") / "writer.js"


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
        done = subprocess.run(
            ["node", str(PROGRAM)],
            env={**os.environ, "NODE_PATH": KAFKAJS.search_path},
            input="\n".join(lines),
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]


def _plain(sent: Sent) -> list[object]:
    headers = [[name, _text(content)] for name, content in sent.headers]
    return [sent.partition, sent.timestamp, _text(sent.key), _text(sent.value), headers]


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
