"""Identifies this broker: checks its log dir, and builds its registration.

A log dir belongs to one broker of one cluster for good. The dir is claimed once the store has given
the broker an id; serving another broker's dir would mix their data, so a contradiction ends the
start.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from brokers.cluster.levels import KNOWN_LEVEL
from brokers.cluster.store import Registered, Registration
from brokers.storage.files import Files
from brokers.storage.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)

# The kernel's id of its current boot; brokers with the same one fail together.
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class ForeignLogDir(Exception):
    """The log dir belongs to another broker; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity in a log dir; -1 and empty if no broker has claimed it."""

    broker_id: int
    cluster_id: str
    directory_id: bytes


def read_identity(files: Files, log_dir: str) -> Identity:
    """Read the identity of a log dir; StorageCorrupt if it is unclear."""
    found = read_meta_properties(files, log_dir)
    if found is None:
        return Identity(broker_id=-1, cluster_id="", directory_id=os.urandom(16))
    return Identity(
        broker_id=found.node_id,
        cluster_id=found.cluster_id,
        # Files of Kafka's older brokers have none.
        directory_id=found.directory_id or os.urandom(16),
    )


def registration(
    identity: Identity,
    *,
    host: str,
    port: int,
    inspection_port: int,
    rack: str | None,
    clean_epoch: int | None,
    wanted_id: int = -1,
    highest_producer_id: int = -1,
) -> Registration:
    """Build the registration of this process; each call is a new incarnation."""
    return Registration(
        incarnation=os.urandom(16),
        host=host,
        port=port,
        broker_id=identity.broker_id,
        wanted_id=wanted_id,
        cluster_id=identity.cluster_id,
        log_dir_id=identity.directory_id,
        rack=rack,
        inspection_port=inspection_port,
        boot_id=_boot_id(),
        pid=os.getpid(),
        clean_epoch=clean_epoch,
        highest_producer_id=highest_producer_id,
        metadata_level=KNOWN_LEVEL,
    )


def claim(files: Files, log_dir: str, identity: Identity, registered: Registered) -> None:
    """Write the identity into the log dir, if it is new."""
    ours = (registered.broker_id, registered.cluster_id)
    noted = (identity.broker_id, identity.cluster_id)
    if identity.broker_id >= 0 and noted != ours:
        raise ForeignLogDir(
            f"log dir {log_dir} belongs to broker {noted[0]} of cluster {noted[1]}, and this"
            f" process is broker {ours[0]} of cluster {ours[1]}; give it a log dir of its own"
        )
    found = read_meta_properties(files, log_dir)
    if found is None or found.directory_id is None:
        properties = MetaProperties(
            node_id=registered.broker_id,
            cluster_id=registered.cluster_id,
            directory_id=identity.directory_id,
        )
        write_meta_properties(files, log_dir, properties)


def _boot_id() -> str:
    with suppress(OSError):
        return BOOT_ID.read_text(encoding="ascii").strip()
    return ""
