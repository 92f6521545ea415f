"""The description covers every address, and what it says of each holds for hostile callers, too."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from django.urls import URLPattern
from hypothesis import HealthCheck, Phase, given, settings

from gateway.rest.openapi.document import document
from gateway.rest.v2 import urls as v2
from gateway.rest.v3 import urls as v3
from tests.gateway.rest.asking import CLUSTER, Api
from tests.gateway.rest.v3.fields import FIELDS, allowed, required

pytestmark = pytest.mark.slow
# Some of each of about fifty calls; a fuzzer of its own is for longer runs.
EXAMPLES = 20
STREAMS = [
    ("POST", "/v3", "/clusters/{cluster_id}/topics/{topic}/records"),
    ("GET", "/v1", "/topics/{topic}/records"),
    ("PUT", "/v1", "/something/{new}"),
]


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document(v3="/v3", v2="/rest", streams=STREAMS)


def addresses(patterns: list[Any], prefix: str) -> set[str]:
    return {
        prefix + "/" + re.sub(r"\(\?P<(\w+)>[^)]+\)", r"{\1}", str(one.pattern)).strip("^$?/")
        for one in patterns
        if isinstance(one, URLPattern) and hasattr(one.callback, "cls")
    }


def test_every_address_of_a_view_is_described(described: dict[str, Any]) -> None:
    wanted = addresses(v3.urlpatterns, "/v3") | addresses(v2.urlpatterns, "/rest")

    assert len(wanted) > 40
    assert wanted <= set(described["paths"])


def test_streams_are_described_beside_them(described: dict[str, Any]) -> None:
    for method, prefix, address in STREAMS:
        assert method.lower() in described["paths"][prefix + address]


def test_bodies_are_described(described: dict[str, Any]) -> None:
    made = described["paths"]["/v3/clusters/{cluster_id}/topics"]["post"]

    [(media, body)] = made["requestBody"]["content"].items()
    assert media == "application/json"
    assert body["schema"] == {"$ref": "#/components/schemas/CreateTopicRequestData"}


def test_lists_of_words_have_the_names_of_the_interface(described: dict[str, Any]) -> None:
    lists = {name for name, one in described["components"]["schemas"].items() if "enum" in one}

    assert lists >= {"AclOperation", "ConfigSource", "ConsumerGroupState", "ConsumerGroupType"}
    # Others are named by a digest, which changes with their words.
    assert not {name for name in lists if name.endswith("Enum")} - {"ConfigTypeEnum", "NullEnum"}


def test_no_two_operations_share_a_name(described: dict[str, Any]) -> None:
    names = [one["operationId"] for way in described["paths"].values() for one in way.values()]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", FIELDS)
def test_a_kind_is_described_with_its_fields(described: dict[str, Any], kind: str) -> None:
    name = kind.removeprefix("Kafka")
    schema = described["components"]["schemas"].get(f"{name}Data") or next(
        found
        for key, found in described["components"]["schemas"].items()
        if key.startswith(name) and key.endswith("Data")
    )

    assert set(schema["properties"]) == allowed(kind)
    assert required(kind) <= set(schema["required"])


@pytest.mark.parametrize("prefix", ["/v3", "/kafka/v3"])
def test_the_description_is_served_below_each_prefix(api: Api, prefix: str) -> None:
    api.prefix = prefix

    found = api.get("/openapi.json")

    assert f"{prefix}/clusters/{{cluster_id}}/topics" in found["paths"]


def test_no_call_that_is_made_up_fails_the_gateway(api: Api) -> None:
    found = document(v3="/v3", v2="/rest", streams=[])
    # Half of what is made up is about the cluster that there is.
    for way in found["paths"].values():
        for one in way.values():
            for parameter in one.get("parameters", []):
                if parameter["name"] == "cluster_id":
                    parameter["schema"] = {"type": "string", "enum": [CLUSTER]}
    api.prefix = ""
    schema = schemathesis.openapi.from_dict(found)
    failed: list[str] = []
    wrong: set[str] = set()
    answered: set[int] = set()

    for result in schema.get_all_operations():
        operation = result.ok()  # type: ignore[union-attr] # an error would fail here

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            query = f"?{urlencode(case.query)}" if case.query else ""
            body = case.body if isinstance(case.body, dict | list | str | int) else None
            answer = api(case.method, f"{case.formatted_path}{query}", body)
            answered.add(answer.status_code)
            row = case.operation.definition.raw["responses"].get(str(answer.status_code), {})
            if answer.content and answer["Content-Type"] not in row.get("content", {}):
                wrong.add(
                    f"{case.method} {case.operation.path} {answer.status_code} {answer.headers}"
                )
            if answer.status_code >= 500:
                failed.append(f"{case.method} {case.formatted_path} {answer.content!r}")

        ask()

    assert failed == []
    assert wrong == set()
    # Some calls are right, some are wrong, and some name what is not there.
    assert {200, 400, 404} <= answered
