"""Calls that no view serves, made up by their description and asked over a real socket."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from gateway.rest.route import Door
from gateway.rest.table import bare
from tests.builders import tokens
from tests.database import sqlite_databases
from tests.fakes.broker_thread import broker_beside
from tests.fakes.whole_door import Told, WholeDoor, whole_door
from tests.gateway.rest.asking import CLUSTER

pytestmark = pytest.mark.slow
# Of each of some twenty calls.
EXAMPLES = 10
KNOWN = {"cluster_id": CLUSTER, "topic": "orders", "topic_name": "orders", "partition": "0"}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeDoor]:
    folder = tmp_path_factory.mktemp("door")
    with (
        sqlite_databases(folder),
        broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": 1}) as broker,
        whole_door(folder, broker.bootstrap, cluster=CLUSTER) as found,
    ):
        found.token = tokens.token(grants=tokens.EVERYTHING)
        yield found


def undescribed(case: Any, told: Told) -> set[str]:
    """Return what of an answer the description of its call does not have."""
    row = case.operation.definition.raw["responses"].get(str(told.status))
    kind = told.headers.get("content-type", "").partition(";")[0]
    kinds = set() if row is None else set(row.get("content", {}))
    if row is not None and (kind in kinds or not told.body):
        return set()
    return {f"{case.method} {case.operation.path} {told.status} {kind}"}


def test_no_call_that_is_made_up_fails_the_bare_side(door: WholeDoor) -> None:
    found = door.ask("GET", "/v3/openapi.json").json()
    calls = {(f"{prefix}{route.path}", route.method) for prefix, route in bare(Door.WEB)}
    found["paths"] = {
        path: {method: one for method, one in way.items() if (path, method.upper()) in calls}
        for path, way in found["paths"].items()
    }
    for way in found["paths"].values():
        for one in way.values():
            for parameter in one["parameters"]:
                # What is about nothing that there is ends early.
                if parameter["in"] == "path" and parameter["name"] in KNOWN:
                    parameter["schema"] = {"type": "string", "enum": [KNOWN[parameter["name"]]]}
                elif parameter["name"] == "pattern":
                    # One that means something streams for as long as its caller stays.
                    parameter["schema"] = {"type": "string", "enum": ["(", ""]}
                elif parameter["in"] == "path":
                    parameter["schema"] |= {"minLength": 1}
    failed: list[str] = []
    wrong: set[str] = set()
    answered: set[int] = set()
    operations = 0

    for result in schemathesis.openapi.from_dict(found).get_all_operations():
        operation = result.ok()  # type: ignore[union-attr] # an error would fail here
        operations += 1

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
            kind = case.media_type or "application/json"
            told = door.ask(case.method, f"{case.formatted_path}{query}", body, media_type=kind)
            answered.add(told.status)
            wrong.update(undescribed(case, told))
            if told.status >= 500:
                failed.append(f"{case.method} {case.formatted_path} {told.body!r}")

        ask()

    assert failed == []
    assert wrong == set()
    assert operations >= 15
    assert {400, 404, 422} <= answered


def test_strangers_are_refused_in_the_media_type_of_the_version(door: WholeDoor) -> None:
    found = door.ask("GET", "/v3/openapi.json").json()["paths"]

    for prefix, route in bare(Door.WEB):
        if prefix == "/kafka/v3":
            continue
        told = door.ask(route.method, f"{prefix}{route.path}", authorization="Bearer made-up")
        rows = found[f"{prefix}{route.path}"][route.method.lower()]["responses"]

        assert told.code == (401, 40101)
        assert [told.headers["content-type"]] == list(rows["401"]["content"])
