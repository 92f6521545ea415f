"""Tells the supervisor of this home that there are connectors: it starts what runs them."""

import logging
from typing import Final

from django.conf import settings

log: Final = logging.getLogger(__name__)
# As the supervisor of the home looks for it.
MARK: Final = "connect.wanted"


def note() -> None:
    """Leave the mark; where the disk is full, the next connector does."""
    try:
        (settings.SAMSA_HOME / MARK).touch(mode=0o600)
    except OSError as error:
        log.warning("connect.not_marked reason=%r", str(error))
