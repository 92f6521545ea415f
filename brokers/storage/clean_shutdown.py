"""Marks a log dir in which every log was flushed and closed, with the writing broker's epoch.

Written last at a shutdown and removed first at a start. A broker that finds the mark may skip
recovery, so the mark must never outlive that shutdown (KAFKA-10471).
"""

import json
import os

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, read_file, replace_file
from brokers.storage.names import CLEAN_SHUTDOWN

# A mark is some 40 bytes; a longer file is not one.
_MAX_BYTES = 4096
_VERSION = 0


def write_clean_shutdown(files: Files, log_dir: str, broker_epoch: int) -> None:
    """Mark the dir as cleanly shut down; the caller has flushed and closed every log in it."""
    mark = {"version": _VERSION, "brokerEpoch": broker_epoch}
    text = json.dumps(mark, separators=(",", ":"))
    replace_file(files, os.path.join(log_dir, CLEAN_SHUTDOWN), text.encode("ascii"))


def take_clean_shutdown(files: Files, log_dir: str) -> int | None:
    """Return the broker epoch of a clean shutdown (-1 if absent), None after any other end.

    Removes the mark durably before it returns: a crash from here on is an unclean end. An
    unreadable mark counts as none, since recovery is always right and only slower.
    """
    path = os.path.join(log_dir, CLEAN_SHUTDOWN)
    try:
        data = read_file(files, path, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except StorageCorrupt:
        data = b""
    files.unlink(path)
    files.sync_folder(log_dir)
    return _decode(data)


def _decode(data: bytes) -> int | None:
    try:
        mark = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(mark, dict) or mark.get("version") != _VERSION:
        return None
    epoch = mark.get("brokerEpoch", -1)
    return epoch if type(epoch) is int and epoch >= -1 else None
