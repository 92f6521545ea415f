"""Reads and writes `partition.metadata`: the id of the topic that a partition folder belongs to.

An id is 16 bytes. It keeps a topic that was deleted and created again from using the data of the
old one.
"""

import base64
import binascii
import os

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, read_file, replace_file
from brokers.storage.names import PARTITION_METADATA

_VERSION_LINE = "version: 0"
_ID_PREFIX = "topic_id: "
_ID_BYTES = 16
_ID_TEXT = 22
_NO_TOPIC = bytes(_ID_BYTES)


def encode_id(raw: bytes) -> str:
    """Return an id as Kafka prints it: base64 for URLs, without padding."""
    assert len(raw) == _ID_BYTES, f"an id has {_ID_BYTES} bytes, not {len(raw)}"
    return base64.urlsafe_b64encode(raw)[:_ID_TEXT].decode("ascii")


def decode_id(text: str) -> bytes | None:
    """Return the 16 bytes of an id that Kafka printed; None for anything else."""
    try:
        raw = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return raw if len(raw) == _ID_BYTES and encode_id(raw) == text else None


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Return the bytes of the file."""
    assert topic_id != _NO_TOPIC, "the zero id means no topic"
    return f"{_VERSION_LINE}\n{_ID_PREFIX}{encode_id(topic_id)}".encode("ascii")


def write_partition_metadata(files: Files, folder: str, topic_id: bytes) -> None:
    """Write the topic id of a partition folder; durable on return."""
    path = os.path.join(folder, PARTITION_METADATA)
    replace_file(files, path, encode_partition_metadata(topic_id))


def read_partition_metadata(files: Files, folder: str) -> bytes | None:
    """Return the topic id of a partition folder; None if absent, StorageCorrupt if damaged."""
    path = os.path.join(folder, PARTITION_METADATA)
    try:
        lines = read_file(files, path).decode("ascii", "replace").splitlines()
    except FileNotFoundError:
        return None
    if len(lines) != 2 or lines[0] != _VERSION_LINE or not lines[1].startswith(_ID_PREFIX):
        raise StorageCorrupt(path, 0, f"{lines[:2]!r} is not a version and topic id")
    topic_id = decode_id(lines[1].removeprefix(_ID_PREFIX))
    if topic_id is None or topic_id == _NO_TOPIC:
        raise StorageCorrupt(path, len(lines[0]) + 1, f"{lines[1][:80]!r} is not a topic id")
    return topic_id
