"""Records choose a path on one server, and nothing else."""

from typing import Any

import pytest

from connectors.plugins.http.addresses import parse
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.testing import sink_record


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://host", "/"),
        ("http://host?a=b", "/?a=b"),
        ("http://host/a?b=c#d", "/a?b=c"),
        ("https://host:8443/${topic}/${key}?p=${partition}&o=${offset}", "/orders/k?p=0&o=5"),
    ],
)
def test_a_url_is_filled_from_the_record(url: str, target: str) -> None:
    assert parse(url).of(sink_record({}, key="k", offset=5)) == target


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("a/b?c#d", "a%2Fb%3Fc%23d"),
        ("../../admin", "..%2F..%2Fadmin"),
        ("x\r\nHost: y", "x%0D%0AHost%3A%20y"),
        ("ä", "%C3%A4"),
        ("${topic}", "%24%7Btopic%7D"),
        (b"raw", "raw"),
        (7, "7"),
        (True, "true"),
    ],
)
def test_a_key_stays_within_its_step_of_the_path(key: Any, shown: str) -> None:
    assert parse("http://host/x/${key}").of(sink_record({}, key=key)) == f"/x/{shown}"


@pytest.mark.parametrize("key", [None, "", ".", "..", b"\xff", 1.5, {"a": 1}, "\ud800", "x" * 9000])
def test_a_key_that_names_no_path_is_refused(key: Any) -> None:
    with pytest.raises(DataError):
        parse("http://host/x/${key}").of(sink_record({}, key=key))


@pytest.mark.parametrize(
    "url",
    [
        "http://${key}/",
        "http://host:${partition}/",
        "${topic}://host/",
        "http://host?x=${key}",
        "http://host/${value}",
        "http://host/${env:HOME}",
        "http://host/${}",
        "http://user:pass@host/",
        "gopher://host/",
        "host/path",
        "",
    ],
)
def test_what_may_not_be_a_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        parse(url)
