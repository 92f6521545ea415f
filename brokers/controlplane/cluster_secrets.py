"""Derives the cluster's keys from its secrets; the only module that reads their rows.

Separate from `selectors`, so that no page imports it by accident. A rotation creates a new key,
which is accepted at once and used only later: by then every agent has written it into the files of
its home, and no process meets an unknown key.
"""

from collections.abc import Mapping
from typing import Final

from brokers.controlplane import models
from brokers.security.cluster_keys import Purpose, derived

# How long a new key is accepted but not used. Agents check for new secrets every 5 s, and readers
# of the files once a second; the rest allows for clock differences and a database that is away.
ACTIVATION_MS: Final = 30_000
# More would leave the key that a rotation was to end valid for longer.
VALID_KEYS: Final = 2
KNOWN: Final = frozenset(purpose.value for purpose in Purpose)


def keys(*, cluster_id: str, now_ms: int) -> Mapping[Purpose, tuple[str, ...]]:
    """Return the valid keys of each purpose, the one to use first."""
    # A newer release may know purposes that this one does not.
    rows = models.ClusterSecret.objects.filter(cluster__cluster_id=cluster_id, purpose__in=KNOWN)
    found: dict[Purpose, list[tuple[int, int, bytes]]] = {purpose: [] for purpose in Purpose}
    for row in rows:
        found[Purpose(row.purpose)].append((row.key_id, row.created_at_ms, bytes(row.value)))
    return {
        purpose: tuple(
            derived(secret=secret, purpose=purpose, cluster_id=cluster_id, key_id=key_id)
            for key_id, secret in _in_order(secrets, now_ms)
        )
        for purpose, secrets in found.items()
    }


def _in_order(secrets: list[tuple[int, int, bytes]], now_ms: int) -> list[tuple[int, bytes]]:
    """Return the valid secrets, the one to use first."""
    newest = sorted(secrets, reverse=True)[:VALID_KEYS]
    if len(newest) == VALID_KEYS and now_ms < newest[0][1] + ACTIVATION_MS:
        newest.reverse()
    return [(key_id, secret) for key_id, _, secret in newest]
