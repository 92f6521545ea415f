"""Plugins over REST: what there is, with which keys, and what a config would be."""

from typing import Any

import pytest

from tests.gateway.rest.asking import Api

SOURCE = {"connector.class": "Lines", "topic": "t", "name": "x"}


def test_plugins_are_listed_by_all_names_that_tools_look_for(connect: Api) -> None:
    found = connect.get("/connector-plugins")

    assert {"class": "samsa.test.lines", "type": "source", "version": "1.0"} in found
    assert {"class": "org.example.LinesConnector", "type": "source", "version": "1.0"} in found
    assert {one["type"] for one in found} == {"source", "sink"}


def test_parts_of_configs_are_listed_when_they_are_asked_for(connect: Api) -> None:
    found = connect.get("/connector-plugins?connectorsOnly=false")

    by_type: dict[str, list[str]] = {}
    for one in found:
        by_type.setdefault(one["type"], []).append(one["class"])
    assert len(by_type["transformation"]) == 27
    assert "org.apache.kafka.connect.transforms.InsertField$Value" in by_type["transformation"]
    assert "org.apache.kafka.connect.json.JsonConverter" in by_type["converter"]
    assert len(by_type["predicate"]) == 3
    assert "org.apache.kafka.connect.storage.SimpleHeaderConverter" in by_type["header_converter"]


def test_the_keys_of_a_plugin_have_all_that_a_form_needs(connect: Api) -> None:
    found = connect.get("/connector-plugins/Lines/config")

    assert found[1] == {
        "name": "topic",
        "type": "STRING",
        "required": True,
        "default_value": None,
        "importance": "HIGH",
        "documentation": "",
        "group": None,
        "order_in_group": -1,
        "width": "NONE",
        "display_name": "topic",
        "dependents": [],
    }
    regex = connect.get("/connector-plugins/org.apache.kafka.connect.transforms.RegexRouter/config")
    assert [key["name"] for key in regex] == ["regex", "replacement"]
    missing = connect("GET", "/connector-plugins/nope/config")
    assert (missing.status_code, missing.json()["message"]) == (404, "Unknown plugin nope.")


def validate(connect: Api, config: dict[str, Any], plugin: str = "Lines") -> Any:
    return connect("PUT", f"/connector-plugins/{plugin}/config/validate", config)


def test_a_config_is_judged_and_nothing_is_made_of_it(connect: Api) -> None:
    answer = validate(connect, SOURCE | {"tasks.max": "foo", "connection.password": "s3cret"})

    found = answer.json()
    assert answer.status_code == 200
    assert (found["name"], found["error_count"]) == ("Lines", 2)
    assert found["groups"][:2] == ["Common", "Transforms"]
    assert b"s3cret" not in answer.content
    assert connect.get("/connectors") == []


def test_a_mask_is_judged_as_what_is_stored(connect: Api) -> None:
    connect("PUT", "/connectors/x/config", SOURCE | {"connection.password": "s3cret"})
    shown = connect.get("/connectors/x/config")

    assert validate(connect, shown).json()["error_count"] == 0
    assert validate(connect, {**shown, "name": "y"}).json()["error_count"] == 1


@pytest.mark.parametrize(
    ("plugin", "config", "message"),
    [
        ("Lines", {"topic": "t"}, "Connector config {topic=t} contains no connector type"),
        ("Lines", {"password": "s3cret"}, "Connector config {password=[hidden]} contains no"),
        ("nope", {"connector.class": "nope"}, "Failed to find any class that implements Connector"),
        (
            "Lines",
            {"connector.class": "samsa.test.blackhole"},
            "Included connector type samsa.test.blackhole does not match request type Lines",
        ),
    ],
)
def test_a_config_of_no_or_another_plugin_is_refused(
    connect: Api, plugin: str, config: dict[str, Any], message: str
) -> None:
    answer = validate(connect, config, plugin)

    assert answer.status_code == 400
    assert answer.json()["message"].startswith(message)
