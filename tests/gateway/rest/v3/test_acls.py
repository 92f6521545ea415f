"""Brokers without access rules say so, to all that asks for rules or sets them."""

from typing import Any

import pytest

from tests.gateway.rest.asking import Api

pytestmark = pytest.mark.slow

RULE = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:a",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
ALL_OF_TOPICS = "resource_type=TOPIC&pattern_type=LITERAL&operation=READ&permission=ALLOW"


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("GET", "acls", None),
        ("GET", "acls?principal=User%3Aa", None),
        ("POST", "acls", RULE),
        ("POST", "acls:batch", {"data": [RULE, RULE]}),
        ("DELETE", f"acls?{ALL_OF_TOPICS}", None),
    ],
)
def test_security_is_disabled_in_the_brokers_words(
    api: Api, method: str, address: str, body: Any
) -> None:
    answer = api(method, address, body)

    assert (answer.status_code, answer.json()["error_code"]) == (400, 40002)
    assert "No Authorizer is configured" in answer.json()["message"]


def test_what_is_left_out_never_means_everything(api: Api) -> None:
    answer = api("DELETE", "acls")

    assert answer.json()["error_code"] == 400
    assert "resource_type" in answer.json()["message"]


def test_words_that_kafka_does_not_have_are_refused(api: Api) -> None:
    assert api("GET", "acls?operation=FLY").json()["error_code"] == 400
    assert api("POST", "acls", RULE | {"permission": "MAYBE"}).json()["error_code"] == 400
