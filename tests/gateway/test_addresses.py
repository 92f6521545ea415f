"""The client's address behind proxies: only what trusted ones say counts."""

import pytest

from gateway.addresses import (
    MAX_HOPS,
    NotAnAddress,
    client_address,
    network_of,
    networks,
    said_by_trusted,
)

TRUSTED = networks(["10.0.0.0/8", "2001:db8:1::/48"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        # Nobody in between.
        ("192.0.2.1", "", "192.0.2.1"),
        # A client that is no proxy of ours says what it likes.
        ("192.0.2.1", "198.51.100.9", "192.0.2.1"),
        ("10.0.0.7", "198.51.100.9", "198.51.100.9"),
        ("10.0.0.7", "198.51.100.9, 10.0.0.8", "198.51.100.9"),
        # What the client itself sent stands on the left.
        ("10.0.0.7", "127.0.0.1, 198.51.100.9", "198.51.100.9"),
        ("10.0.0.7", "203.0.113.5, 198.51.100.9, 10.0.0.8", "198.51.100.9"),
        # All of them are ours: the one that is furthest away.
        ("10.0.0.7", "10.0.0.9, 10.0.0.8", "10.0.0.9"),
        # Nonsense ends the list.
        ("10.0.0.7", "198.51.100.9, nonsense", "10.0.0.7"),
        ("10.0.0.7", "198.51.100.9, , 10.0.0.8", "10.0.0.8"),
        ("10.0.0.7", ",,,,", "10.0.0.7"),
        # An IPv4 client of an IPv6 socket is the same client.
        ("::ffff:10.0.0.7", "::ffff:198.51.100.9", "198.51.100.9"),
        ("2001:db8:1::5", "2001:db8:2::9", "2001:db8:2::9"),
        # A unix socket has no address.
        ("", "198.51.100.9", ""),
    ],
)
def test_the_list_is_read_from_the_right_as_far_as_it_is_trusted(
    peer: str, forwarded: str, client: str
) -> None:
    assert client_address(peer, forwarded, TRUSTED) == client


def test_a_list_without_end_is_not_read_to_its_end() -> None:
    forwarded = ",".join(["198.51.100.9", *["10.0.0.8"] * 50_000])

    assert client_address("10.0.0.7", forwarded, TRUSTED) == "10.0.0.8"
    assert client_address("10.0.0.7", ",".join(forwarded.split(",")[:MAX_HOPS]), TRUSTED) == (
        "198.51.100.9"
    )


@pytest.mark.parametrize(
    ("peer", "way", "header", "said"),
    [
        # Nobody who is believed.
        ("192.0.2.1", "", "https", None),
        ("192.0.2.1", "10.0.0.8", "https", None),
        ("", "", "https", None),
        # One proxy; what the client itself sent stands on the left.
        ("10.0.0.7", "198.51.100.9", "https", "https"),
        ("10.0.0.7", "198.51.100.9", "https, http", "http"),
        ("10.0.0.7", "", "https", "https"),
        # Two, the outer one of which ends TLS.
        ("10.0.0.7", "198.51.100.9, 10.0.0.8", "https, http", "https"),
        ("10.0.0.7", "198.51.100.9, 10.0.0.8", "gopher, https, http", "https"),
        # Two, of which the inner one writes the header anew, or passes it on.
        ("10.0.0.7", "198.51.100.9, 10.0.0.8", "https", "https"),
        # A name in the list of addresses that is none is the end of what is known.
        ("10.0.0.7", "10.0.0.9, nonsense", "https, http", "http"),
        ("10.0.0.7", "", "", ""),
    ],
)
def test_of_a_header_only_what_trusted_proxies_have_written_counts(
    peer: str, way: str, header: str, said: str | None
) -> None:
    assert said_by_trusted(header, peer, way, TRUSTED) == said


def test_networks_are_read_as_an_operator_writes_them() -> None:
    assert [str(network) for network in networks([" 10.0.0.7 ", "10.1.2.3/16", "::1"])] == [
        "10.0.0.7/32",
        "10.1.0.0/16",
        "::1/128",
    ]
    with pytest.raises(NotAnAddress, match=r"'proxy\.example'"):
        networks(["10.0.0.7", "proxy.example"])


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        # Of a socket that takes both kinds.
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("", "no address", True),
    ],
)
def test_an_ipv6_subscriber_is_one_source(one: str, other: str, *, is_same: bool) -> None:
    assert (network_of(one) == network_of(other)) is is_same
