"""Replaces masks in an edited config by the stored passwords.

A stored password is kept only if its destination is unchanged: otherwise a user who may change a
config, but not know its password, could have it sent to a host of their own.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from connectors import framework_keys as keys
from connectors.sdk.configs import MASK
from connectors.vault import Stored, masked, shown_as

# Parts of key names that set the destination of a connection, and its trusted certificates.
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
    """A config with its masks filled in, and the keys of other masks with the reason."""

    config: Mapping[str, str]
    refused: Mapping[str, str]


def filled(
    config: Mapping[str, str],
    stored: Stored,
    opened: Mapping[str, str],
    partly_secret: Callable[[Mapping[str, str]], Mapping[str, str]],
) -> Filled:
    """Return a config with its masks filled in. `opened` is the stored config in clear.

    `partly_secret` returns the partly secret values of a config, masked.
    """
    kept = [
        key
        for key, text in config.items()
        if MASK in text and key in stored and text.strip() == shown_as(stored[key])
    ]
    if not kept:
        return Filled(config=config, refused={})
    changed = sorted(leading_elsewhere({**config, **partly_secret(config)}, masked(stored)))
    if changed:
        reason = (
            f"{', '.join(changed)} changes, and the stored password goes nowhere else than before:"
            " give the password itself"
        )
        return Filled(config=config, refused=dict.fromkeys(kept, reason))
    found = {**config, **{key: opened[key] for key in kept}}
    shown = partly_secret(found)
    # Another key may define which parts are secret; changing it must not reveal them.
    bared = [
        key for key in kept if config[key].strip() != MASK and shown.get(key) != config[key].strip()
    ]
    if bared:
        reasons = {
            key: f"another key changes which parts of {key} are secret: give the parts themselves"
            for key in bared
        }
        return Filled(config=config, refused=reasons)
    return Filled(config=found, refused={})


def leading_elsewhere(config: Mapping[str, str], former: Mapping[str, str]) -> set[str]:
    """Return changed keys that could send a password elsewhere."""
    names = {key for key in {*config, *former} if config.get(key) != former.get(key)}
    return {
        key
        for key in names
        if key == keys.CLASS or not LEADS_AWAY.isdisjoint(PARTS.split(key.lower()))
    }
