"""Which hosts connectors reach, and which they are kept from."""

import ipaddress
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from connectors.sdk import outgoing
from connectors.sdk.errors import ConfigError, RetriableError


@pytest.fixture(autouse=True)
def nothing_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(outgoing.SETTING, raising=False)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def resolve_to(monkeypatch: pytest.MonkeyPatch, *texts: str) -> None:
    """Have every name stand for these addresses, whose order is the resolver's."""

    def answer(host: str, port: int, **_: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, port)) for text in texts]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "a loopback address"),
        ("127.8.9.1", "a loopback address"),
        ("::1", "a loopback address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("64:ff9b::7f00:1", "a loopback address"),
        ("2002:7f00:1::", "a loopback address"),
        ("169.254.169.254", "a link-local address"),
        ("::ffff:a9fe:a9fe", "a link-local address"),
        ("fe80::1%lo", "a link-local address"),
        ("10.1.2.3", "a private address"),
        ("172.16.0.1", "a private address"),
        ("192.168.1.1", "a private address"),
        ("fd00:ec2::254", "a private address"),
        ("0.0.0.0", "an unspecified address"),  # noqa: S104 (nobody binds to it)
        ("::", "an unspecified address"),
        ("224.0.0.1", "a multicast address"),
        ("100.100.100.200", "not an address of the public network"),
        ("192.0.0.192", "not an address of the public network"),
        ("64:ff9b:1::7f00:1", "not an address of the public network"),
        ("::7f00:1", "not an address of the public network"),
        ("fec0::1", "not an address of the public network"),
        ("::ffff:0:7f00:1", "not an address of the public network"),
        ("::2:7f00:1", "not an address of the public network"),
        ("5f00::1", "not an address of the public network"),
        ("4000::1", "not an address of the public network"),
        ("168.63.129.16", "an address of the cloud's own services"),
        ("255.255.255.255", "a private address"),
    ],
)
def test_what_is_not_public_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str, kind: str
) -> None:
    resolve_to(monkeypatch, address)

    with pytest.raises(ConfigError) as refused:
        outgoing.addresses("target.example", 8080)

    assert kind in str(refused.value)
    assert "SAMSA_CONNECT_TARGETS=target.example:8080" in str(refused.value)


@pytest.mark.parametrize("written", ["127.1", "2130706433", "0x7f000001", "017700000001"])
def test_other_spellings_of_an_address_are_judged_as_the_address(written: str) -> None:
    with pytest.raises((ConfigError, RetriableError)) as refused:
        outgoing.addresses(written, 8080)

    assert "loopback" in str(refused.value) or "cannot resolve" in str(refused.value)


def test_public_addresses_are_open_at_the_ports_of_the_web(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, "93.184.216.34", "2606:2800:220:1::1")

    assert outgoing.addresses("example.com", 443) == ("93.184.216.34", "2606:2800:220:1::1")
    assert outgoing.addresses("example.com.", 8443)[0] == "93.184.216.34"
    with pytest.raises(ConfigError, match="at port 25"):
        outgoing.addresses("example.com", 25)


def test_of_several_addresses_only_those_that_may_be_reached_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, "127.0.0.1", "93.184.216.34", "10.0.0.1")

    assert outgoing.addresses("example.com", 80) == ("93.184.216.34",)


@pytest.mark.parametrize(
    ("setting", "is_open"),
    [
        ("10.0.0.0/8", True),
        ("10.1.2.3", True),
        ("10.1.2.3:5432", True),
        ("10.1.2.3:5433", False),
        ("10.2.0.0/16", False),
        ("db.internal", True),
        ("DB.internal:5432", True),
        ("*.internal", True),
        ("internal", False),
        ("*.other", False),
        ("*", True),
        ("*:5432", True),
        (" 192.168.0.0/16 , db.internal ", True),
        ("[fd00::1]:5432", False),
        ("", False),
    ],
)
def test_an_administrator_allows_names_and_networks(
    monkeypatch: pytest.MonkeyPatch, setting: str, *, is_open: bool
) -> None:
    resolve_to(monkeypatch, "10.1.2.3")
    monkeypatch.setenv(outgoing.SETTING, setting)

    if is_open:
        assert outgoing.addresses("db.internal", 5432) == ("10.1.2.3",)
    else:
        with pytest.raises(ConfigError):
            outgoing.addresses("db.internal", 5432)


def test_rules_of_ipv6_have_their_port_behind_brackets() -> None:
    plain, with_port = outgoing.parse_rules("fd00::1,[fd00::1]:5432")

    address = ipaddress.ip_address("fd00::1")
    assert plain.allows("x", address, 1)
    assert with_port.allows("x", address, 5432)
    assert not with_port.allows("x", address, 1)


@pytest.mark.parametrize("setting", ["a b", "http://x", "x:99999999", "*.*", "a,,/8"])
def test_an_entry_that_says_nothing_is_refused_by_its_text(setting: str) -> None:
    with pytest.raises(ConfigError, match="SAMSA_CONNECT_TARGETS has the entry"):
        outgoing.parse_rules(setting)


@pytest.mark.parametrize("host", ["", "a b", "a\r\nb", "a/b", "user@host", "x" * 300, "a..b"])
def test_what_is_no_name_is_not_asked_for(host: str) -> None:
    with pytest.raises(ConfigError, match="not a host name"):
        outgoing.addresses(host, 80)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_ports_have_their_range(port: int) -> None:
    with pytest.raises(ConfigError, match="not between 1 and 65535"):
        outgoing.addresses("example.com", port)


def test_the_connection_goes_to_the_address_that_was_judged(
    monkeypatch: pytest.MonkeyPatch, listener: socket.socket
) -> None:
    asked: list[str] = []
    real = socket.getaddrinfo

    def answer(host: str, port: int, *_: object, **told: object) -> Sequence[object]:
        asked.append(host)
        return real("127.0.0.1", port, type=socket.SOCK_STREAM)

    port = listener.getsockname()[1]
    monkeypatch.setenv(outgoing.SETTING, f"target.example:{port}")
    monkeypatch.setattr(socket, "getaddrinfo", answer)

    with closing(outgoing.connect("target.example", port)) as connection:
        assert connection.getpeername() == ("127.0.0.1", port)

    # What is asked for afterwards is a number, of which no second answer exists.
    assert asked[0] == "target.example"
    assert "target.example" not in asked[1:]


def test_a_target_that_is_not_there_may_be_tried_again(
    monkeypatch: pytest.MonkeyPatch, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    listener.close()
    monkeypatch.setenv(outgoing.SETTING, "127.0.0.1")

    with pytest.raises(RetriableError, match=f"cannot connect to 127.0.0.1:{port}"):
        outgoing.connect("127.0.0.1", port)


def test_name_that_is_not_resolved_in_time_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()

    def hang(*_args: object, **_options: object) -> object:
        is_over.wait(60)
        raise OSError

    monkeypatch.setattr(outgoing, "RESOLVE_S", 0.01)
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        assert outgoing.refusal("slow.example", 443, allowed=(), can_resolve=True) is None
    finally:
        is_over.set()
