"""Who a request comes from, behind proxies that are trusted and none that are not."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Network = IPv4Network | IPv6Network
# More proxies in a row than anybody has; what a header has beyond them is not looked at.
MAX_HOPS: Final = 16
# Whoever has an IPv6 address has all that share its first half.
IPV6_PREFIX: Final = 64


class NotAnAddress(ValueError):
    """A text that names no address and no network; the message is the text, quoted."""


def networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Read addresses and networks as an operator writes them."""
    found = []
    for text in texts:
        try:
            found.append(ip_network(text.strip(), strict=False))
        except ValueError:
            raise NotAnAddress(repr(text)) from None
    return tuple(found)


def client_address(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """Return the address of the client, from the peer's and its X-Forwarded-For.

    Each proxy adds on the right the address that it was spoken to by. So the list is read from
    there, and only as far as those who wrote it are trusted: what comes further left, the client
    may have made up.
    """
    return _way(peer, forwarded, trusted)[0]


def said_by_trusted(
    header: str, peer: str, forwarded: str, trusted: Sequence[Network]
) -> str | None:
    """Return what the outermost trusted proxy has said in a header to which each proxy adds.

    None where no trusted proxy is there. One that does not add to it but writes it anew is the
    only one that is heard.
    """
    if not is_within(peer, trusted):
        return None
    client, passed = _way(peer, forwarded, trusted)
    proxies = passed + is_within(client, trusted)
    said = header.rsplit(",", MAX_HOPS)[-MAX_HOPS:]
    return said[-min(proxies, len(said))].strip()


def _way(peer: str, forwarded: str, trusted: Sequence[Network]) -> tuple[str, int]:
    """Return the client, and how many trusted proxies lie between it and here."""
    client, passed = peer, 0
    hops = forwarded.rsplit(",", MAX_HOPS)[-MAX_HOPS:] if forwarded else []
    while hops and is_within(client, trusted):
        hop = _address(hops.pop())
        if hop is None:
            # The proxy that wrote it is the last one that is known to be there.
            break
        client, passed = str(hop), passed + 1
    return client, passed


def network_of(address: str) -> str:
    """Return an address, or the network that one subscriber has; nothing for a unix socket."""
    found = _address(address)
    if found is None:
        return ""
    if isinstance(found, IPv6Address):
        return str(IPv6Network((found, IPV6_PREFIX), strict=False))
    return str(found)


def is_within(text: str, trusted: Sequence[Network]) -> bool:
    """Tell whether an address is in one of these networks."""
    address = _address(text)
    return address is not None and any(
        address.version == network.version and address in network for network in trusted
    )


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address as others compare it, without its zone and out of an IPv6 wrapping."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or IPv6Address(address.packed)
    return address
