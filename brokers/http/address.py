"""Opens connections to HTTP servers. No other module does, so that TLS has one place."""

import asyncio
import socket
import ssl
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server listens: a unix socket, or a host and port, with TLS if `tls` is given."""

    host: str = "localhost"
    port: int = 0
    path: Path | None = None
    tls: ssl.SSLContext | None = None

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        has_default_port = self.port == (80 if self.tls is None else 443)
        return name if self.path is not None or has_default_port else f"{name}:{self.port}"


def open_socket(address: Address, wait_seconds: float) -> socket.socket:
    """Connect a socket with this timeout for each call; OSError if there is no server."""
    with ExitStack() as stack:
        if address.path is not None:
            made = stack.enter_context(socket.socket(socket.AF_UNIX))
            made.settimeout(wait_seconds)
            made.connect(str(address.path))
        else:
            place = (address.host, address.port)
            made = stack.enter_context(socket.create_connection(place, timeout=wait_seconds))
            # The head and the body of a request may be two writes.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.tls is not None:
                made = address.tls.wrap_socket(made, server_hostname=address.host)
        stack.pop_all()
        return made


async def open_streams(
    address: Address, *, limit: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect streams of which the reader holds twice the limit at most."""
    if address.path is not None:
        return await asyncio.open_unix_connection(str(address.path), limit=limit)
    return await asyncio.open_connection(address.host, address.port, ssl=address.tls, limit=limit)
