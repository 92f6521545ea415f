"""The description covers every address, and is true for hostile callers, too."""

from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from gateway.rest.openapi.document import document
from gateway.rest.route import Door
from gateway.rest.table import table
from tests.gateway.rest.asking import CLUSTER, Api
from tests.gateway.rest.v3.fields import FIELDS, allowed, required
from tests.scale import count

pytestmark = pytest.mark.slow
# Some of each of about fifty calls; a fuzzer of its own is for longer runs.
EXAMPLES = count(10, 20, long=60)
# Each row once: below one prefix of version 3.
TABLE = [below for below in table(Door.WEB) if below.prefix != "/kafka/v3"]


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document(TABLE)


def test_rows_are_described_and_nothing_else_is(described: dict[str, Any]) -> None:
    rows = {
        (f"{below.prefix}{route.path}", route.method.lower())
        for below in TABLE
        for route in below.routes
    }

    assert rows == {(path, method) for path, way in described["paths"].items() for method in way}


def test_rows_have_a_tag_and_a_summary(described: dict[str, Any]) -> None:
    calls = [one for way in described["paths"].values() for one in way.values()]

    assert {tag for one in calls for tag in one["tags"]} == {
        tag["name"] for tag in described["tags"]
    }
    assert all(one.get("summary") or one["description"] for one in calls)


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
    found = document(TABLE)
    views = {(f"{b.prefix}{r.path}", r.method) for b in TABLE for r in b.routes if r.view}
    found["paths"] = {
        path: {method: one for method, one in way.items() if (path, method.upper()) in views}
        for path, way in found["paths"].items()
    }
    # Half of the generated calls name the existing cluster.
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
