"""The description of REST, route by route: parameters, bodies and statuses, without sentences."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.answers.asking import Ask, Door
from tests.answers.home import AnswersHome

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


def record(home: AnswersHome) -> Iterator[str]:
    document = document_of(home.door(home.gateway), "/v3/openapi.json")
    yield from ("## routes at the gateway's own port", "", *routes(document), "")
    yield from ("## schemas", "", *schemas(document), "")
    document = document_of(home.door(home.web), "/kafka/v3/openapi.json")
    yield from ("## paths beside the console", "")
    yield from (
        f"{path}: {' '.join(sorted(item))}" for path, item in sorted(document["paths"].items())
    )
    yield ""
    for name, address in (("gateway", home.gateway), ("web", home.web)):
        answer = home.door(address).ask(Ask(method="GET", path="/ws/v1/frames.json"))
        yield f"## /ws/v1/frames.json at {name}: {answer.status}"


def document_of(door: Door, path: str) -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads(door.ask(Ask(method="GET", path=path, by="nobody")).body)
    return found


def routes(document: Mapping[str, Any]) -> Iterator[str]:
    for path, item in sorted(document["paths"].items()):
        for method in METHODS:
            if method not in item:
                continue
            operation = item[method]
            yield f"{method.upper()} {path}"
            given = [*item.get("parameters", ()), *operation.get("parameters", ())]
            names = sorted(
                f"{each['in']}:{each['name']}{'!' * each.get('required', False)}" for each in given
            )
            yield f"    parameters {', '.join(names) or '-'}; tags {operation.get('tags')}"
            yield f"    security {operation.get('security')}"
            for kind, media in operation.get("requestBody", {}).get("content", {}).items():
                yield f"    body {kind} {shape(media.get('schema', {}))}"
            for status, answer in operation["responses"].items():
                content = answer.get("content", {})
                kinds = [
                    f"{kind} {shape(media.get('schema', {}))}" for kind, media in content.items()
                ]
                yield f"    {status} {'; '.join(kinds) or '-'} {sorted(answer.get('headers', {}))}"


def schemas(document: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        yield f"{name}: {shape(schema)}"


def shape(schema: Mapping[str, Any]) -> str:
    """Return a schema in one line: its name, or its fields with their types."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for several in ("oneOf", "anyOf", "allOf"):
        if several in schema:
            return f"{several}({', '.join(shape(each) for each in schema[several])})"
    if "properties" in schema:
        required = schema.get("required", ())
        fields = (
            f"{name}{'!' * (name in required)}: {shape(each)}"
            for name, each in schema["properties"].items()
        )
        return "{" + ", ".join(fields) + "}"
    if "items" in schema:
        return f"[{shape(schema['items'])}]"
    limits = {
        key: value
        for key, value in schema.items()
        if key not in {"type", "description", "title", "example", "examples", "readOnly"}
    }
    text = str(schema.get("type", "any"))
    return f"{text} {json.dumps(limits, sort_keys=True)}" if limits else text
