"""Ports for servers that benchmarks and tests start: each is claimed until this process ends.

They lie below the ports that the kernel gives to outgoing connections and to servers that ask for
any port. A server that is stopped for a while, or that takes long to start, finds its port free.
"""

import random
import socket
from typing import Final

# Below 32768, where Linux begins to hand out ports by itself, and above well-known servers.
PORTS: Final = range(20_000, 32_000)
# A run claims some dozens of the ports.
MAX_TRIES: Final = 1000
# The kernel drops a claim with the process that holds it.
CLAIMS: Final[list[socket.socket]] = []


def claim_port() -> int:
    """Return a free port of 127.0.0.1 that no other caller on this machine gets meanwhile."""
    for port in random.sample(PORTS, MAX_TRIES):
        claim = socket.socket(socket.AF_UNIX)
        try:
            # A name without a file, which one process at a time can hold.
            claim.bind(f"\0samsa-port-{port}")
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            claim.close()
        else:
            CLAIMS.append(claim)
            return port
    raise AssertionError(f"none of {MAX_TRIES} ports in {PORTS} is free: end what holds them")
