"""Who is at the other end of a connection.

Values only. What a peer may do is decided by whoever handles its requests.
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
    # What its ApiVersions request says, from version 3 on (KIP-511); empty before.
    software: str = ""
    software_version: str = ""
