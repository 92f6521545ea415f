"""Passwords that come back as a mask, and stand for what is stored.

A stored password is kept only where it goes to the same place as before: else whoever may change a
config, and may not know its password, could have it sent to a host of their own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connectors import framework_keys as keys
from connectors.sdk.configs import MASK
from connectors.vault import Stored, is_sealed, masked

# Parts of the names of keys that say where a connector connects to, and whom it trusts there.
LEADS_AWAY: Final = frozenset(
    {
        *("url", "urls", "uri", "uris", "host", "hosts", "hostname", "port", "ports", "target"),
        *("endpoint", "endpoints", "server", "servers", "address", "addresses", "brokers"),
        *("proxy", "ssl", "sslmode", "tls", "verify"),
    }
)
PARTS: Final = re.compile(r"[._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A config with masks replaced by what is stored; keys with masks that were left, and why."""

    config: Mapping[str, str]
    refused: Mapping[str, str]


def filled(config: Mapping[str, str], stored: Stored, opened: Mapping[str, str]) -> Filled:
    """Return a config with its masks filled in. `opened` is the stored config in clear."""
    masks = [key for key, text in config.items() if text.strip() == MASK]
    kept = [key for key in masks if is_sealed(stored.get(key))]
    if not kept:
        return Filled(config=config, refused={})
    changed = sorted(_changed(config, masked(stored)))
    if changed:
        reason = (
            f"{', '.join(changed)} changes, and the stored password goes nowhere else than before:"
            " give the password itself"
        )
        return Filled(config=config, refused=dict.fromkeys(kept, reason))
    return Filled(config={**config, **{key: opened[key] for key in kept}}, refused={})


def _changed(config: Mapping[str, str], former: Mapping[str, str]) -> set[str]:
    """Return keys whose change could send a password elsewhere."""
    names = {key for key in {*config, *former} if config.get(key) != former.get(key)}
    return {
        key
        for key in names
        if key == keys.CLASS or not LEADS_AWAY.isdisjoint(PARTS.split(key.lower()))
    }
