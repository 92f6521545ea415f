"""Passes the cluster's keys to the processes of a home, in files that only its owner may read.

Files rather than messages: the web server and the inspection port need their keys before they could
request them, and continue while the agent is away.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connections

from brokers.clock import Clock
from brokers.cluster.image import Position
from brokers.cluster.store import MetadataRegressed
from brokers.controlplane import cluster_secrets
from brokers.controlplane.agent.home import replace_text
from brokers.controlplane.logs import log
from brokers.controlplane.reading import check_known
from brokers.controlplane.store import OrmStore
from brokers.key_files import MAX_KEYS, read_keys, write_keys
from brokers.security.cluster_keys import Purpose

# How soon a rotation is noticed, well within the time in which the new key is not used yet. A check
# is one short read of the database.
LOOK_EVERY_S: Final = 5.0
# The file with the cluster's id for the web server, whose cookies contain a part of it.
CLUSTER_ID_FILE: Final = "cluster-id"


async def keep_keys(store: OrmStore, clock: Clock) -> None:
    """Follow rotations until the agent stops."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            await asyncio.to_thread(
                look_once, store.cluster_id, clock.now_ms(), after=store.image.position
            )
        except MetadataRegressed:
            # An older copy has keys that rotations have ended; the store reports it.
            pass
        except (DatabaseError, OSError) as error:
            # The existing files stay valid.
            log.limited("keys.not_written", error=str(error).strip())


def look_once(cluster_id: str, now_ms: int, *, after: Position) -> None:
    """Write the files, over a connection of this thread that is closed at the end of the call.

    MetadataRegressed if the database does not know the position that was read last.
    """
    try:
        check_known(cluster_id=cluster_id, position=after)
        write_key_files(cluster_id, now_ms)
    finally:
        connections.close_all()


def write_key_files(cluster_id: str, now_ms: int) -> None:
    """Update every key file that is not up to date."""
    replace_text(settings.SAMSA_HOME / CLUSTER_ID_FILE, f"{cluster_id}\n")
    for purpose, keys in cluster_secrets.keys(cluster_id=cluster_id, now_ms=now_ms).items():
        file: Path = settings.SAMSA_SECRETS / purpose.value
        there: tuple[str, ...] = ()
        with suppress(OSError, ValueError):
            there = read_keys(file)
        wanted = keys + _of_earlier_release(purpose, keys, there)
        # A database that is being restored has none for a moment.
        if wanted and wanted != there:
            write_keys(file, wanted)
            log.info("keys.written", file=str(file), key_ids=[_number(key) for key in wanted])


def _of_earlier_release(
    purpose: Purpose, keys: tuple[str, ...], there: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the secret that a home had before there were keys; it is valid until a rotation.

    A metrics collector that was set up with it continues to work.
    """
    if purpose is not Purpose.INSPECTION:
        return ()
    return tuple(key for key in there if "." not in key)[: MAX_KEYS - len(keys)]


def _number(key: str) -> str:
    return key.partition(".")[0] if "." in key else "of an earlier release"
