"""Writes one log line with keys for each access event, done or refused.

`changes` has what also becomes an entry among all changes. No password, key or token is ever an
argument.
"""

import json
import logging
from dataclasses import dataclass
from typing import Final

log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who does something: the name of a user, and the address of the browser."""

    name: str
    address: str = ""


def record(event: str, *, actor: Actor, subject: str, **details: str) -> None:
    """Tell that an actor has changed a subject, or was refused; `event` is in the past tense."""
    keys = {"actor": actor.name, "address": actor.address, "subject": subject, **details}
    # JSON texts, so that no name with a space or a line feed reads as another key or line.
    pairs = " ".join(f"{key}={json.dumps(value)}" for key, value in keys.items())
    log.info("%s %s", event, pairs)
