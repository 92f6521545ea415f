"""Finds the cluster and the brokers of a worker's or beat's home."""

import json
from contextlib import suppress
from typing import Final

from django.conf import settings
from django.core.management import CommandError

from brokers import beats
from gateway.kafka.connection import Connection
from gateway.kafka.errors import failure

CLIENT_ID: Final = "samsa-connect"
# Written by the supervisor of the home while it runs.
SETTINGS_FILE: Final = settings.SAMSA_HOME / "run" / "settings.json"


def cluster() -> str:
    """Return the id of the home's cluster."""
    file = settings.SAMSA_HOME / "cluster-id"
    try:
        return str(file.read_text(encoding="ascii").strip())
    except OSError as error:
        raise CommandError(
            f"{file} cannot be read ({error.strerror}): start the home first"
        ) from None


def connection() -> Connection:
    """Return a connection to the brokers; KafkaFailure if none has written its address yet."""
    bootstrap = settings.SAMSA_GATEWAY_BOOTSTRAP
    if not bootstrap:
        with suppress(OSError, ValueError, AttributeError):
            told = json.loads(SETTINGS_FILE.read_text(encoding="utf-8"))
            bootstrap = str(told.get("bootstrap") or "")
    if not bootstrap:
        raise failure(
            "BROKER_NOT_AVAILABLE", str(SETTINGS_FILE), "no broker has reported its address"
        )
    return Connection(bootstrap=bootstrap, client_id=CLIENT_ID)


def touch(name: str) -> None:
    """Update the time of a file, by which others see that this process works."""
    # A full disk, or a missing folder, must not end the process.
    with suppress(OSError):
        (settings.SAMSA_SOCKETS / f"{name}.alive").touch(mode=0o600)


def say_ready() -> None:
    """Notify the process that started this one, if it waits."""
    beats.say_ready(settings.SAMSA_READY_FD, {"ready": True})
    # Its own loop may wait for the database for longer than a process may be silent.
    beats.beat_beside(settings.SAMSA_READY_FD)
