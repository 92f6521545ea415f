"""Decides which pages of the inspection port a client's key opens.

The agent of the host writes the keys into files. The broker reads them on each use, so that a
rotation needs no restart, and so that it need not wait for them: until there is a key, the port
refuses all readers.
"""

import hmac
from collections.abc import Sequence
from typing import Final

from brokers.key_files import KeyFile

METRICS: Final = "/metrics"


class InspectionKeys:
    """The keys that open every page, and those that open METRICS only."""

    def __init__(self, *, every_page: KeyFile, metrics: KeyFile) -> None:
        self._every_page = every_page
        self._metrics = metrics

    def refusal(self, path: str, shown: Sequence[bytes]) -> tuple[int, str] | None:
        """Return why these Authorization headers do not open a page; None if they do."""
        keys = self._every_page.keys()
        if not keys:
            return 503, "no key is known here yet: the agent of this host writes it when it starts"
        if len(shown) == 1:
            if _is_one_of(shown[0], keys):
                return None
            if _is_one_of(shown[0], self._metrics.keys()):
                return None if path == METRICS else (403, f"this key opens {METRICS} only")
        return 401, "this page wants a secret of the cluster as a bearer token"


def _is_one_of(shown: bytes, keys: Sequence[str]) -> bool:
    """Compare keys in a time that does not depend on how much of a key is right."""
    return any(hmac.compare_digest(shown, f"Bearer {key}".encode()) for key in keys)
