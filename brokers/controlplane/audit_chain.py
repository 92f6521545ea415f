"""Computes the digest of an audit entry, which covers the digest of the entry before it.

A change, insertion or removal of an entry requires new digests for all later ones; a copy of one
later digest, kept elsewhere, reveals that.
"""

import hashlib
import json

from brokers.controlplane import models


def digest_of(entry: models.AuditEntry) -> str:
    """Return the digest; repetitions of a refusal, which are counted later, are not in it."""
    covered = [
        entry.previous,
        entry.number,
        entry.made_at_ms,
        entry.actor,
        entry.via,
        entry.client_id,
        entry.address,
        entry.session,
        entry.kind,
        entry.subject,
        entry.name,
        entry.outcome,
        entry.message,
        entry.before,
        entry.after,
        entry.version,
    ]
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
