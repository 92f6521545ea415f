"""Decides whether a port may listen on an address, since passwords pass through it.

Pure. Other addresses than loopback require TLS, here or at a proxy in front, or an operator's
statement that the network is trusted.
"""

from ipaddress import ip_address


def refusal(host: str, *, has_tls: bool, has_proxy: bool, is_insecure: bool) -> str:
    """Return why a server may not listen on an address, and what to add; empty if it may."""
    if has_tls or has_proxy or is_insecure or is_loopback(host):
        return ""
    return (
        f"{host} can be reached from other machines, and passwords and tokens would go there in"
        " clear text: add --web-cert and --web-key, name the proxy that encrypts in"
        " SAMSA_TRUSTED_PROXIES, or add --insecure if that network is trusted"
    )


def is_loopback(host: str) -> bool:
    """Tell whether the address of a socket is loopback; a path always is."""
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.startswith(("/", "\0")) or not host
