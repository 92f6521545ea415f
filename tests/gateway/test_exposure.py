"""Where a door may be open."""

import pytest

from gateway.exposure import refusal


def refused(host: str, **said: bool) -> str:
    return refusal(host, **{"has_tls": False, "has_proxy": False, "is_insecure": False, **said})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.4.5.6", "::1", "/run/some.sock", ""])
def test_on_this_machine_a_door_needs_nothing(host: str) -> None:
    assert refused(host) == ""


@pytest.mark.parametrize("host", ["10.0.0.1", "0.0.0.0", "::", "fe80::1%eth0"])  # noqa: S104
def test_beyond_it_a_door_without_tls_or_proxy_is_refused(host: str) -> None:
    why = refused(host)

    assert why.startswith(host)
    assert "--web-cert" in why
    assert "--insecure" in why


@pytest.mark.parametrize("said", ["has_tls", "has_proxy", "is_insecure"])
def test_tls_a_proxy_or_somebodys_word_opens_it(said: str) -> None:
    assert refused("10.0.0.1", **{said: True}) == ""
