"""Raises this process's limit of open files, and computes how many are left for clients."""

import resource
from typing import Final

from brokers.storage.handles import default_budget

# The listener, the link to the agent, the inspection port, the loop's own, a checkpoint or two.
SPARE: Final = 64


def raise_limit() -> None:
    """Raise the limit to what the system allows; call this before logs are opened."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def for_clients() -> int:
    """Return the number of descriptors that logs leave for clients."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**31 - 1
    return max(1, soft - default_budget() - SPARE)
