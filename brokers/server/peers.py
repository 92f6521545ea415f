"""Describes the peer of a connection.

Values only. The handlers of its requests decide what a peer may do.
"""

from dataclasses import dataclass
from typing import Final

ANONYMOUS: Final = "User:ANONYMOUS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    address: str  # its IP, without the port
    port: int = 0
    principal: str = ANONYMOUS
    listener: str = "PLAINTEXT"
    # From its ApiVersions request, in version 3 or later (KIP-511); empty before.
    software: str = ""
    software_version: str = ""
