"""Writes one structured log line for each access event, done or refused.

`changes` records the events that are also entries of the audit log. Never pass a password, key or
token.
"""

import json
import logging
from dataclasses import dataclass
from typing import Final

log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The actor of an event: the name of a user, and the address of the browser."""

    name: str
    address: str = ""


def record(event: str, *, actor: Actor, subject: str, **details: str) -> None:
    """Log that an actor changed a subject or was refused; `event` is in the past tense."""
    keys = {"actor": actor.name, "address": actor.address, "subject": subject, **details}
    # Encode as JSON, so that a name with a space or a line feed cannot pose as another key or line.
    pairs = " ".join(f"{key}={json.dumps(value)}" for key, value in keys.items())
    log.info("%s %s", event, pairs)
