"""Keys of others take the value that is done anyway, and no other."""

from typing import Any

import pytest

from connectors.sdk.checks import check
from connectors.sdk.configs import Kind
from connectors.sdk.fixed_keys import fixed_key

WAN = fixed_key("wan", Kind.BOOLEAN, False, "give a URL", also=())
KIND = fixed_key("kind", Kind.STRING, "one", "there is one", also=("uno",))
PROXY = fixed_key("proxy", Kind.STRING, None, "there is none")


@pytest.mark.parametrize(
    ("key", "value"), [(WAN, False), (WAN, None), (KIND, "one"), (KIND, "uno"), (PROXY, "")]
)
def test_what_is_done_anyway_may_be_said(key: Any, value: Any) -> None:
    assert check(key, value) is None


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (WAN, True, "It is not supported (give a URL): take it out, or give false"),
        (KIND, "two", "It is not supported (there is one): take it out, or give one or uno"),
        (PROXY, "host", "It is not supported (there is none): take it out"),
    ],
)
def test_anything_else_is_refused_with_the_reason(key: Any, value: Any, said: str) -> None:
    told = check(key, value)

    assert told is not None
    assert told.endswith(said)
    assert key.name in told
