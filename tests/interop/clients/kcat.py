"""kcat (librdkafka's command line) as a client of the matrix.

One run of the program writes with one set of headers to one partition, so a list of records takes
several runs, in the order of the list within each partition.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from brokers.protocol.records.compression import Compression
from tests.interop.clients.client import SECONDS
from tests.interop.clients.records import Headers, Row, Sent, Trait

# Neither occurs in any content.
RECORD_END, KEY_END = b"\x02<end>\x03", b"\x02<key>\x03"
# It prints content as it is, so its JSON is no proper text; nothing is lost this way.
BYTES_AS_TEXT = ("utf-8", "surrogateescape")


class KcatClient:
    name = "kcat"
    needs: tuple[str, ...] = ("kcat",)
    cannot_write: Mapping[Trait, str] = {
        Trait.OWN_TIMESTAMP: "it has no option for a record's time",
        Trait.NULL_KEY_EMPTY_VALUE: "it passes over an empty line",
        Trait.EMPTY_KEY_NULL_VALUE: "its -Z makes null of empty keys and values alike",
        Trait.UNNAMED_HEADER: "its -H wants a name before the =",
        Trait.BINARY_HEADER: "an argument of a program holds no zero byte",
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
        # Stable, so that the order within a partition stays.
        by_partition = sorted(records, key=lambda sent: sent.partition)
        for (partition, headers, is_null), run in groupby(by_partition, _kind):
            options = [
                *("-P", "-q", "-b", bootstrap, "-t", topic, "-p", str(partition)),
                *("-z", codec.name.lower(), "-X", f"enable.idempotence={str(idempotent).lower()}"),
                *(part for header in headers for part in ("-H", _header(*header))),
                *("-K", KEY_END.decode(), "-D", RECORD_END.decode()),
                *(["-Z"] if is_null else []),
            ]
            _run(options, b"".join(map(_line, run)))

    def read(self, bootstrap: str, topic: str, partitions: Sequence[int]) -> list[Row]:
        # Without a group and a partition it assigns all of them; -e ends it at their ends.
        where = ["-b", bootstrap, "-t", topic, "-o", "beginning", "-X", "check.crcs=true"]
        lines = _run(["-C", "-q", "-e", "-J", *where], b"").splitlines()
        rows = [_row(json.loads(line.decode(*BYTES_AS_TEXT))) for line in lines]
        return [row for row in rows if row.partition in partitions]


def _kind(sent: Sent) -> tuple[int, Headers, bool]:
    return sent.partition, sent.headers, sent.value is None


def _header(name: str, content: bytes | None) -> str:
    return name if content is None else f"{name}={content.decode()}"


def _line(sent: Sent) -> bytes:
    # With -Z an empty key is null, without it the lack of a key is.
    key = b"" if sent.key is None and sent.value is not None else (sent.key or b"") + KEY_END
    return key + (sent.value or b"") + RECORD_END


def _run(options: Sequence[str], lines: bytes) -> bytes:
    done = subprocess.run(
        ["kcat", *options], input=lines, capture_output=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def _row(found: dict[str, Any]) -> Row:
    parts = found.get("headers", [])
    return Row(
        found["partition"],
        found["offset"],
        found["ts"],
        _content(found["key"]),
        _content(found["payload"]),
        tuple(zip(parts[::2], map(_content, parts[1::2]), strict=True)),
    )


def _content(text: str | None) -> bytes | None:
    return None if text is None else text.encode(*BYTES_AS_TEXT)
