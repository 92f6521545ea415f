"""Identifies a source partition by the digest of its canonical text."""

import hashlib
import json
from typing import Final

from connectors.sdk.records import Place

# A place names a table, a file or a partition.
MAX_PLACE_CHARS: Final = 10_000


def spelled(place: Place) -> str:
    """Return the canonical text of a place, independent of the order of its keys."""
    return json.dumps(dict(place), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(place: Place) -> str:
    return hashlib.sha256(spelled(place).encode("utf-8", "surrogatepass")).hexdigest()
