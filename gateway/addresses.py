"""Determines the client address of a request behind proxies, of which only some are trusted."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Network = IPv4Network | IPv6Network
# No real chain of proxies is longer; further entries of the header are ignored.
MAX_HOPS: Final = 16
# A subscriber of IPv6 has all addresses that share the first half.
IPV6_PREFIX: Final = 64


class NotAnAddress(ValueError):
    """A text that is no address and no network; the message is the text, quoted."""


def networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Parse addresses and networks in an operator's notation."""
    found = []
    for text in texts:
        try:
            found.append(ip_network(text.strip(), strict=False))
        except ValueError:
            raise NotAnAddress(repr(text)) from None
    return tuple(found)


def client_address(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """Return the address of the client, from the peer's and its X-Forwarded-For.

    Each proxy appends the address of its peer on the right. So the list is read from there, and
    only as far as its authors are trusted: the client may have invented everything further left.
    """
    return _way(peer, forwarded, trusted)[0]


def said_by_trusted(
    header: str, peer: str, forwarded: str, trusted: Sequence[Network]
) -> str | None:
    """Return the entry of the outermost trusted proxy in a header that each proxy appends to.

    None if no trusted proxy is involved. The entry of a proxy that replaces the header is the only
    one that is used.
    """
    if not is_within(peer, trusted):
        return None
    client, passed = _way(peer, forwarded, trusted)
    proxies = passed + is_within(client, trusted)
    said = header.rsplit(",", MAX_HOPS)[-MAX_HOPS:]
    return said[-min(proxies, len(said))].strip()


def _way(peer: str, forwarded: str, trusted: Sequence[Network]) -> tuple[str, int]:
    """Return the client, and the number of trusted proxies between it and here."""
    client, passed = peer, 0
    hops = forwarded.rsplit(",", MAX_HOPS)[-MAX_HOPS:] if forwarded else []
    while hops and is_within(client, trusted):
        hop = _address(hops.pop())
        if hop is None:
            # The proxy that wrote it is the last known one.
            break
        client, passed = str(hop), passed + 1
    return client, passed


def network_of(address: str) -> str:
    """Return an address, or the network of one subscriber; an empty text for a unix socket."""
    found = _address(address)
    if found is None:
        return ""
    if isinstance(found, IPv6Address):
        return str(IPv6Network((found, IPV6_PREFIX), strict=False))
    return str(found)


def is_loopback(address: str) -> bool:
    """Tell whether an address is of this host itself, as all its local users share it."""
    found = _address(address)
    return found is not None and found.is_loopback


def is_within(text: str, trusted: Sequence[Network]) -> bool:
    """Tell whether an address is in one of the networks."""
    address = _address(text)
    return address is not None and any(
        address.version == network.version and address in network for network in trusted
    )


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address in a comparable form, without zone and IPv6 mapping."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or IPv6Address(address.packed)
    return address
