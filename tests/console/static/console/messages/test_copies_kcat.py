"""The command that is copied for kcat writes the record that it was copied from."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from console.producing import record_at
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.readers.admission import admit
from gateway.kafka.values import Header, NewTopic
from tests.extras import requires
from tests.fakes.readers import FakeReader
from tests.interop.homes import shared_bootstrap
from tests.node import evaluated

pytestmark = [requires("node", "kcat"), pytest.mark.interop, pytest.mark.slow]

Record = tuple[bytes | None, bytes | None, tuple[Header, ...]]
RECORDS: list[Record] = [
    (b"k", b"v", ()),
    (None, b"v", (("h", b"x"), ("none", None), ("empty", b""))),
    (b"it's $(id)\n", b"two\nlines\n", (("a b", b"c'\n=d"),)),
    (b"\xff\xfe", bytes(range(256)), (("raw", b"\xff"),)),
    (b"gone", None, ()),
    (None, None, ()),
    (b"k", b"", ()),
    (b"k\n\x1e", b"", ()),
    (b"\0", b"\0\n", ()),
    (b"k", b"\x1e\x1f\n\x1e\x1e", ()),
    (b"k", b'{"id": 9007199254740993}', (("json", b'{"a": "b,c"}'),)),
]


def test_kcat_writes_each_record_as_it_was(unique: Callable[[str], str]) -> None:
    bootstrap, topic = shared_bootstrap(), unique("copied")
    Admin(Connection(bootstrap=bootstrap)).create([NewTopic(name=topic, partitions=1)])

    commands = evaluated(
        "messages/copies.js",
        """given.map((r) => m.asKcatWrite({...r, key: bytes(r.key), value: bytes(r.value),
           headers: r.headers.map(([name, data]) => [name, bytes(data)])}))""",
        [told(bootstrap, topic, record) for record in RECORDS],
    )
    for command in commands:
        subprocess.run(["bash", "-c", command], check=True, capture_output=True, timeout=30)

    admission = admit(FakeReader(), [topic])
    for offset, wanted in enumerate(RECORDS):
        found = record_at(admission, bootstrap, topic, 0, offset)
        assert found is not None
        assert (found.key, found.value, found.headers) == wanted, commands[offset]


def told(bootstrap: str, topic: str, record: Record) -> dict[str, Any]:
    key, value, headers = record
    return {
        "bootstrap": bootstrap,
        "topic": topic,
        "partition": 0,
        "key": None if key is None else list(key),
        "value": None if value is None else list(value),
        "headers": [[name, None if data is None else list(data)] for name, data in headers],
    }
