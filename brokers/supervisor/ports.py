"""Checks whether ports are free, and binds sockets that outlive the processes that serve them."""

import errno
import os
import socket
from collections.abc import Container
from typing import Final

from brokers.supervisor.errors import StartRefused
from brokers.supervisor.options import MAX_PORT, endpoint

# Long enough for a database across a continent, short enough for a waiting user.
REACH_SECONDS: Final = 3
BACKLOG: Final = 512
# Far more homes than run at the same time on one machine.
MAX_STEPS: Final = 100


def listen(host: str, port: int, purpose: str, option: str) -> socket.socket:
    """Bind a port now and keep it; connections wait until a process serves it."""
    listener = bound(host, port, purpose, option)
    listener.listen(BACKLOG)
    return listener


def listen_near(
    host: str, port: int, purpose: str, option: str, *, but: Container[int]
) -> socket.socket:
    """Bind a port, or the next free one above it that is not among some others."""
    last = min(port + MAX_STEPS, MAX_PORT)
    for candidate in range(port, last + 1):
        if candidate not in but and not is_taken(host, candidate):
            return listen(host, candidate, purpose, option)
    raise StartRefused(
        f"ports {port} to {last}, one of which was meant for {purpose}, are all taken:"
        f" give {option} a free one"
    )


def require_free(host: str, port: int, purpose: str, option: str) -> None:
    """Refuse a port that another process holds. Port 0 is always free."""
    bound(host, port, purpose, option).close()


def bound(host: str, port: int, purpose: str, option: str) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise StartRefused(
            f"--bind {host} is not an address of this machine ({error.strerror})"
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        # As the servers themselves do: a connection in TIME_WAIT does not hold a port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Two sockets that only bound may share a port; the second to listen may not.
        listener.listen(1)
    except OSError as error:
        listener.close()
        raise StartRefused(why_not(error, host, port, purpose, option)) from error
    return listener


def why_not(error: OSError, host: str, port: int, purpose: str, option: str) -> str:
    where = endpoint(host, port)
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port}, meant for {purpose}, is taken by another program ({where}):"
                f" stop that program or give another {option}"
            )
        case errno.EACCES:
            return (
                f"port {port}, meant for {purpose}, is only for root ({where}):"
                f" give another {option} above 1023"
            )
        case errno.EADDRNOTAVAIL:
            return f"--bind {host} is not an address of this machine: give one of its own"
    return f"{purpose} cannot listen on {where}: {os.strerror(error.errno or 0)}"


def is_taken(host: str, port: int) -> bool:
    try:
        bound(host, port, "", "").close()
    except StartRefused:
        return True
    return False


def answers(host: str, port: int) -> bool:
    """Tell whether a process accepts connections there."""
    try:
        socket.create_connection((host, port), timeout=REACH_SECONDS).close()
    except OSError:
        return False
    return True
