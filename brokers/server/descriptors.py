"""How many files and sockets this process may have open, and how many of them are for clients."""

import resource
from typing import Final

from brokers.storage.handles import default_budget

# The listener, the link to the agent, the inspection port, the loop's own, a checkpoint or two.
SPARE: Final = 64


def raise_limit() -> None:
    """Takes all that the system allows this process; to be called before logs are opened."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def for_clients() -> int:
    """What is left when logs have their share."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**31 - 1
    return max(1, soft - default_budget() - SPARE)
