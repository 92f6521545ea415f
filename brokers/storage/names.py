"""Formats and parses Kafka's names for folders and files.

Pure text: touches no disk. The names are the contract that lets Apache Kafka open Samsa's folders
and Samsa open Kafka's, so all of them are defined here.
"""

import re
from dataclasses import dataclass

# Files of one segment, each named by the segment's base offset in 20 digits (2^63-1 has 19).
LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
PRODUCER_SNAPSHOT = ".snapshot"
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

# Markers of a file: to be removed later; being written by the cleaner; complete, and to be renamed
# into place even after a crash. The last two follow the file's own suffix.
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
TEMPORARY = ".tmp"

# Files of one partition folder.
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

# Files of the log dir itself.
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"
LOCK = ".lock"
PRODUCER_IDS = "samsa.producer-ids"  # ours; Kafka ignores files that it does not know
DISK_FAILURES = "samsa.disk-failures"

# Partition folders to be deleted, and those set aside for an operator to inspect.
DELETE_FOLDER = "-delete"
STRAY_FOLDER = "-stray"
FUTURE_FOLDER = "-future"

# The longest name a folder may have on the usual Linux file systems.
MAX_NAME_BYTES = 255

_OFFSET_FILE = re.compile(r"(\d{20})(\.[a-z]+)((?:\.[a-z]+)?)", re.ASCII)
_PARTITION = re.compile(r"([a-zA-Z0-9._-]+)-(0|[1-9]\d{0,9})", re.ASCII)
_MARKERS = f"{DELETE_FOLDER}|{STRAY_FOLDER}|{FUTURE_FOLDER}"
_SET_ASIDE = re.compile(rf"(.+)-(\d{{1,10}})\.([0-9a-f]{{32}})({_MARKERS})", re.ASCII)
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFolder:
    """The parts of a folder's name; `marker` is empty for a live one, and only then topic is whole.

    A folder set aside may have had its topic's end cut off to fit the file system.
    """

    topic: str
    partition: int
    marker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFile:
    """The parts of a file name in a partition folder: `00…042.log.swap` is 42, .log, .swap."""

    offset: int
    suffix: str
    marker: str = ""


def offset_file(offset: int, suffix: str) -> str:
    """Return the name of a segment file or snapshot."""
    assert 0 <= offset <= _MAX_OFFSET, f"offset {offset} cannot name a file"
    return f"{offset:020d}{suffix}"


def beside(log_path: str, suffix: str, marker: str | None = None) -> str:
    """Return the path of another file of a segment, under the same marker or the one given."""
    stem, _, present = log_path.rpartition(LOG)
    return stem + suffix + (present if marker is None else marker)


def parse_offset_file(name: str) -> OffsetFile | None:
    """Return the parts of a segment file's name; None for any other file."""
    match = _OFFSET_FILE.fullmatch(name)
    if match is None or int(match[1]) > _MAX_OFFSET:
        return None
    return OffsetFile(offset=int(match[1]), suffix=match[2], marker=match[3])


def partition_folder(topic: str, partition: int) -> str:
    """Return the folder name of a partition in service."""
    return f"{topic}-{partition}"


def set_aside_folder(topic: str, partition: int, unique: str, marker: str) -> str:
    """Return a folder's name until its deletion or inspection; `unique` is 32 hex digits.

    The unique part separates a topic that is deleted and created again from its old folders.
    """
    ending = f"-{partition}.{unique}{marker}"
    return topic[: MAX_NAME_BYTES - len(ending)] + ending


def parse_partition_folder(name: str) -> PartitionFolder | None:
    """Return the partition of a folder; None for any other folder."""
    aside = _SET_ASIDE.fullmatch(name)
    if aside is not None:
        topic, partition, marker = aside[1], int(aside[2]), aside[4]
    else:
        match = _PARTITION.fullmatch(name)
        if match is None:
            return None
        topic, partition, marker = match[1], int(match[2]), ""
    if partition > _MAX_PARTITION:
        return None
    return PartitionFolder(topic=topic, partition=partition, marker=marker)
