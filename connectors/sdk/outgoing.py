"""Decides which hosts a connector may connect to, and opens only such connections.

A config names the target, but its author may not have access to everything that the worker can
reach: its own machine, its network, the metadata service of its cloud. So a name is resolved once,
every address is checked, and the connection uses a checked address, since a second lookup could
answer otherwise. An administrator allows further targets in `SAMSA_CONNECT_TARGETS`:
hosts (`db.internal`, `*.internal`), addresses and networks (`127.0.0.1`, `10.0.0.0/8`), each with
or without a port (`127.0.0.1:5432`), or `*` for everything; separated by commas.

Plugins whose library opens connections pass it an address from `addresses`, never the name.
"""

import ipaddress
import os
import re
import socket
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeAlias

from connectors.sdk.errors import ConfigError, RetriableError

SETTING: Final = "SAMSA_CONNECT_TARGETS"
# A live host answers within milliseconds, or on the other side of the earth within half a second; a
# slice must not wait for others.
CONNECT_S: Final = 5.0
# How long a form waits for the addresses of a name, and how many names are looked up at once: a
# resolver without an answer takes half a minute.
RESOLVE_S: Final = 3.0
MAX_RESOLVING: Final = 8
# Ports below 1024 are those of other services, such as SSH and mail, which may interpret a request
# as commands. 80 and 443 are those of the web.
OPEN_PORTS: Final = frozenset({80, 443, *range(1024, 65536)})
# DNS's limit.
MAX_HOST_CHARS: Final = 253
# Further addresses of a round robin are not tried.
MAX_ADDRESSES: Final = 8
# Longer lists are unreadable.
MAX_RULES: Final = 1000
# A public address of a cloud: the agent of Azure's hosts.
CLOUD_ADDRESSES: Final = frozenset({ipaddress.ip_address("168.63.129.16")})
NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
# Not public, although the library says so: protocol assignments, with a cloud's metadata service.
NOT_PUBLIC: Final = ipaddress.ip_network("192.0.0.0/24")
# The allocated part of IPv6. The rest has site-local addresses, segment routing, NAT64, and several
# ways to write an IPv4 address.
PUBLIC_IPV6: Final = ipaddress.ip_network("2000::/3")
_resolvers: Final = ThreadPoolExecutor(MAX_RESOLVING, thread_name_prefix="resolver")
HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*\.?")

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A target that an administrator allows: a name or a network, with one port or all."""

    name: str = ""  # in lower case; "*.x" for all below x, "*" for everything
    network: Network | None = None
    port: int | None = None

    def allows(self, host: str, address: Address, port: int) -> bool:
        if self.port is not None and port != self.port:
            return False
        if self.network is not None:
            return address in self.network
        return self.name in {"*", host} or (self.name[:2] == "*." and host.endswith(self.name[1:]))


def setting() -> str:
    """Return the targets that the administrator of this process allows, as they are written."""
    return os.environ.get(SETTING, "")


def rules() -> tuple[Rule, ...]:
    return parse_rules(setting())


def parse_rules(text: str) -> tuple[Rule, ...]:
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    if len(entries) > MAX_RULES:
        raise ConfigError(f"{SETTING} has {len(entries)} entries, at most {MAX_RULES} are read")
    return tuple(_rule(entry) for entry in entries)


def addresses(host: str, port: int, *, allowed: Sequence[Rule] | None = None) -> tuple[str, ...]:
    """Return the allowed addresses of a host; ConfigError if there are none."""
    name = host.strip("[]").rstrip(".").lower()
    _check(name, host, port)
    allowed = rules() if allowed is None else allowed
    found = _resolve(name, port)
    open_to_us = [address for address in found if not _objection(name, address, port, allowed)]
    if not open_to_us:
        raise ConfigError(_refusal(name, found[0], port, allowed))
    return tuple(str(address) for address in open_to_us[:MAX_ADDRESSES])


def refusal(host: str, port: int, *, allowed: Sequence[Rule], can_resolve: bool) -> str | None:
    """Return why no address of a host is allowed; None if one is, or if none is known.

    A name is not looked up where a user is still typing it, unless it needs no network.
    """
    if not can_resolve and not _is_local(host):
        return None
    looking = _resolvers.submit(addresses, host, port, allowed=allowed)
    try:
        looking.result(RESOLVE_S)
    except ConfigError as error:
        return str(error)
    except (RetriableError, TimeoutError):
        # A worker may know the name, or the server is not there yet.
        return None
    finally:
        # One that has not begun yet would only fill the queue of the threads.
        looking.cancel()
    return None


def connect(
    host: str, port: int, *, tls: ssl.SSLContext | None = None, wait_s: float = CONNECT_S
) -> socket.socket:
    """Connect to an allowed host, with TLS if a context is given."""
    until = time.monotonic() + wait_s
    failure: OSError = TimeoutError("timed out")
    for address in addresses(host, port):
        left = until - time.monotonic()
        if left <= 0:
            break
        try:
            plain = socket.create_connection((address, port), timeout=left)
        except OSError as error:
            failure = error
            continue
        # Head and body of a request are two writes, and the second would wait for the first's
        # acknowledgement.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain if tls is None else _secure(plain, host, port, tls, until)
    raise RetriableError(f"cannot connect to {host}:{port}: {failure}")


def _secure(
    plain: socket.socket, host: str, port: int, tls: ssl.SSLContext, until: float
) -> socket.socket:
    plain.settimeout(max(0.1, until - time.monotonic()))
    try:
        return tls.wrap_socket(plain, server_hostname=host.strip("[]"))
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise ConfigError(
            f"{host}:{port} shows a certificate that cannot be trusted: {error.verify_message}"
        ) from error
    except OSError as error:
        plain.close()
        raise RetriableError(f"no TLS with {host}:{port}: {error}") from error


def _rule(entry: str) -> Rule:
    host, port = entry, None
    # A colon in an IPv6 address separates no port, unless there are brackets.
    if match := re.fullmatch(r"(\[[^\]]+\][^:]*|[^:]+):(\d{1,5})", entry):
        host, port = match[1], int(match[2])
    host = host.replace("[", "").replace("]", "").rstrip(".").lower()
    try:
        return Rule(network=ipaddress.ip_network(host, strict=False), port=port)
    except ValueError:
        pass
    if host != "*" and HOST.fullmatch(host.removeprefix("*.")) is None:
        raise ConfigError(
            f"{SETTING} has the entry {entry!r}: write host, host:port, address or network"
        )
    return Rule(name=host, port=port)


def _is_local(host: str) -> bool:
    """Return whether a host is an address, or a name of this machine."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost"
    return True


def _check(name: str, host: str, port: int) -> None:
    if not 0 < port < 65536:
        raise ConfigError(f"port {port} of {host!r} is not between 1 and 65535")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        if len(name) > MAX_HOST_CHARS or HOST.fullmatch(name) is None:
            shown = host[:MAX_HOST_CHARS]
            raise ConfigError(f"{shown!r} is not a host name; write a name or an address") from None


def _resolve(name: str, port: int) -> list[Address]:
    # The resolver's own timeouts cannot be shortened here; the time limit of the slice ends them.
    try:
        told = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise RetriableError(f"cannot resolve {name}: {error}") from error
    # A zone (`%eth0`) belongs to link-local addresses, which it must not hide.
    texts = dict.fromkeys(str(row[4][0]).partition("%")[0] for row in told)
    return [ipaddress.ip_address(text) for text in texts]


def _objection(name: str, address: Address, port: int, allowed: Sequence[Rule]) -> str | None:
    """Return why a connection to an address is not allowed, or None."""
    if any(rule.allows(name, address, port) for rule in allowed):
        return None
    if kind := _kind(address):
        return f"{kind}, which connectors may not reach"
    if port not in OPEN_PORTS:
        return f"at port {port}; connectors may reach 80, 443 and those from 1024"
    return None


def _kind(address: Address) -> str | None:
    """Return the kind of an address, or None for public ones."""
    inner = _inner(address)
    if inner in CLOUD_ADDRESSES:
        return "an address of the cloud's own services"
    for kind, is_so in (
        ("a loopback address", inner.is_loopback),
        ("a link-local address", inner.is_link_local),
        ("an unspecified address", inner.is_unspecified),
        ("a multicast address", inner.is_multicast),
        ("a private address", inner.is_private),
        (
            "not an address of the public network",
            not inner.is_global or inner in NOT_PUBLIC or not _is_given_out(inner),
        ),
    ):
        if is_so:
            return kind
    return None


def _is_given_out(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv4Address) or address in PUBLIC_IPV6


def _inner(address: Address) -> Address:
    """Return the IPv4 address in an IPv6 address, if it has one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _refusal(name: str, address: Address, port: int, allowed: Sequence[Rule]) -> str:
    shown = f"{name} is {address}, " if name != str(address) else f"{name} is "
    objection = _objection(name, address, port, allowed)
    return (
        f"{shown}{objection}; an administrator allows it by {SETTING}={name}:{port} "
        "in the environment of `./samsa up`"
    )
