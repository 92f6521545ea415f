"""Reads and writes `meta.properties`, which ties a log dir to one broker of one cluster.

The caller compares the ids with its own. The format is Java's properties text; both of Kafka's
versions are read (0 from ZooKeeper's time), version 1 is written.
"""

import os
import re
from dataclasses import dataclass

from brokers.storage.checkpoints import MAX_INT32, decode_number
from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, read_file, replace_file
from brokers.storage.names import META_PROPERTIES
from brokers.storage.partition_metadata import decode_id, encode_id

# About 120 bytes in practice; comments may grow, but a megabyte cannot be this file.
_MAX_BYTES = 64 * 1024
# The key of the broker's id in each version of the file.
_NODE_KEYS = {"0": "broker.id", "1": "node.id"}

_ENTRY = re.compile(r"((?:\\.|[^\\=:\s])+)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """The ids in a log dir; version 0 of the file lacks the dir's own id."""

    node_id: int
    cluster_id: str
    directory_id: bytes | None


def write_meta_properties(files: Files, log_dir: str, properties: MetaProperties) -> None:
    """Claim a log dir for one broker of one cluster."""
    lines = ["version=1", f"cluster.id={_escape(properties.cluster_id)}"]
    lines.append(f"node.id={properties.node_id}")
    if properties.directory_id is not None:
        lines.append(f"directory.id={encode_id(properties.directory_id)}")
    text = "\n".join([*lines, ""])
    replace_file(files, os.path.join(log_dir, META_PROPERTIES), text.encode("ascii"))


def read_meta_properties(files: Files, log_dir: str) -> MetaProperties | None:
    """Return the owner of a dir; None if it is unclaimed, StorageCorrupt if the file is invalid.

    A damaged file is never rebuilt by guessing: serving a foreign dir would mix two clusters.
    """
    path = os.path.join(log_dir, META_PROPERTIES)
    try:
        data = read_file(files, path, _MAX_BYTES)
    except FileNotFoundError:
        return None
    values = _decode(data.decode("latin-1"))
    version, cluster_id = values.get("version", ""), values.get("cluster.id")
    node_key = _NODE_KEYS.get(version)
    if node_key is None or not cluster_id:
        raise StorageCorrupt(path, 0, f"version {version!r} and cluster id {cluster_id!r}")
    node_id = decode_number(values.get(node_key, ""), MAX_INT32)
    if node_id is None:
        raise StorageCorrupt(path, 0, f"{node_key} is {values.get(node_key)!r}")
    directory_text = values.get("directory.id")
    directory_id = None if directory_text is None else decode_id(directory_text)
    if directory_text is not None and directory_id is None:
        raise StorageCorrupt(path, 0, f"directory.id is {directory_text!r}")
    return MetaProperties(node_id=node_id, cluster_id=cluster_id, directory_id=directory_id)


def _decode(text: str) -> dict[str, str]:
    values = {}
    for line in re.split(r"[\r\n]+", text):
        stripped = line.lstrip(" \t\f")
        entry = None if stripped.startswith(("#", "!")) else _ENTRY.fullmatch(stripped)
        if entry is not None:
            values[_unescape(entry[1])] = _unescape(entry[2])
    return values


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _CONTROL.get(match[2], match[2])

    return _ESCAPE.sub(plain, text)


def _escape(text: str) -> str:
    assert text.isascii(), f"cluster id {text!r} is not ASCII"
    return re.sub(r"([\\=:#! ])", r"\\\1", text)
