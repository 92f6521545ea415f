"""Renders the page docs/protocol.md from the tables that the codec itself uses.

Pure: tables in, text out.  The codec uses the same field specs, and the sentences are those of the
message modules, so the page cannot contradict them.  A test compares the page with `render()`; this
command renews it:

    python -m brokers.protocol.handbook > docs/protocol.md
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from brokers.protocol.apis import API_TABLE, Api
from brokers.protocol.errors import ErrorCode
from brokers.protocol.schema import Field, Kind, Message

# APIs whose fields are all documented, and which are shown field by field. An API joins when its
# handler is written; until then it has only its row in the table of APIs.
IN_FULL: Final = frozenset(
    {
        "AlterConfigs",
        "ApiVersions",
        "CreatePartitions",
        "CreateTopics",
        "DeleteRecords",
        "DeleteTopics",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeTopicPartitions",
        "Fetch",
        "IncrementalAlterConfigs",
        "InitProducerId",
        "ListConfigResources",
        "ListOffsets",
        "Metadata",
        "OffsetForLeaderEpoch",
        "Produce",
        "SaslAuthenticate",
        "SaslHandshake",
    }
)

INTRODUCTION: Final = """\
# The wire protocol

Generated from `brokers/protocol`; changes belong there.
Renew this page with `python -m brokers.protocol.handbook > docs/protocol.md`.

Samsa speaks the protocol of Apache Kafka 4.3, as a broker listener of that release does.
This page lists every request that has a codec; a broker serves what its `ApiVersions` names.
From its first flexible version on a message has compact lengths and tagged fields.
Requests with a link are shown field by field; the others follow with their handlers.
"""

FIELDS_HEAD: Final = "| field | type | versions | null | tag | meaning |\n|--|--|--|--|--|--|\n"
APIS_HEAD: Final = "| key | name | versions | flexible | purpose |\n|--|--|--|--|--|\n"
ERRORS_HEAD: Final = "| number | name | retried | meaning |\n|--|--|--|--|\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The parts of a message module's docstring."""

    job: str
    facts: str  # key, versions and flexibility, in words
    prose: str  # paragraphs, empty for none
    versions: tuple[tuple[int, str], ...]  # what each version changed
    closing: str  # said below the versions, empty for nothing


def render() -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, _apis(), *map(_api, _in_full()), _errors()])


def notes(api: Api) -> Notes:
    """Split the docstring of an API's module into its parts."""
    text = import_module(api.request.__module__).__doc__
    assert text is not None
    job, _, rest = text.strip().partition("\n")
    facts, _, rest = rest.partition("\n")
    prose, _, listed = rest.partition("Versions:\n")
    versions: list[tuple[int, str]] = []
    closing: list[str] = []
    for line in listed.splitlines():
        number, _, words = line.strip().partition(" ")
        if not line.startswith("  "):
            closing.append(line)
        elif line.startswith("   "):
            versions[-1] = (versions[-1][0], f"{versions[-1][1]} {line.strip()}")
        else:
            versions.append((int(number), words.strip()))
    return Notes(
        job=job.removeprefix(f"{api.name}: "),
        facts=facts,
        prose=prose.strip(),
        versions=tuple(versions),
        closing=" ".join(closing),
    )


def facts(api: Api) -> str:
    """Return the table's facts of an API, as in the second line of its module's docstring."""
    low, high = api.versions
    versions = f"version {low}" if low == high else f"versions {low}-{high}"
    flexible = "never flexible" if api.flexible is None else f"flexible from {api.flexible}"
    return f"API {api.key}, {versions}, {flexible}."


def _in_full() -> Iterator[Api]:
    return (api for api in API_TABLE if api.name in IN_FULL)


def _apis() -> str:
    rows = (
        _row(
            api.key,
            f"[{api.name}](#{api.name.lower()})" if api.name in IN_FULL else api.name,
            _span(*api.versions) + _advertised(api),
            "never" if api.flexible is None else api.flexible,
            _escaped(_capitalised(notes(api).job)),
        )
        for api in API_TABLE
    )
    return "## APIs\n\n" + APIS_HEAD + "".join(rows)


def _advertised(api: Api) -> str:
    return "" if api.advertised_from is None else f", advertised from {api.advertised_from}"


def _api(api: Api) -> str:
    said = notes(api)
    parts = [f"## {api.name}\n", _capitalised(said.job), f"{said.facts}\n"]
    if said.prose:
        parts.append(f"{_escaped(said.prose)}\n")
    parts += [f"- **{number}** {_escaped(words)}" for number, words in said.versions]
    if said.closing:
        parts.append(f"\n{_escaped(said.closing)}")
    return "\n".join([*parts, "", _message(api.request), _message(api.response)])


def _message(message: type[Message]) -> str:
    rows = "".join(_fields(message, message.VERSIONS, path=""))
    return f"### {message.__name__}\n\n" + (FIELDS_HEAD + rows if rows else "It has no fields.\n")


def _fields(structure: type[Message], versions: tuple[int, int], path: str) -> Iterator[str]:
    """Yield the rows of a structure, each field followed by the fields inside of it."""
    for field in structure.FIELDS:
        yield _row(
            f"`{path}{field.name}`",
            _type(field),
            _field_versions(field, versions),
            _nullable(field, versions),
            "" if field.tag is None else field.tag,
            _escaped(field.sentence),
        )
        if isinstance(field.element, type):
            yield from _fields(field.element, versions, path=f"{path}{field.name}.")


def _type(field: Field) -> str:
    element = field.element
    if element is None:
        return field.kind.name.lower()
    name = element.__name__ if isinstance(element, type) else element.name.lower()
    return f"array of {name}" if field.kind is Kind.ARRAY else name


def _field_versions(field: Field, versions: tuple[int, int]) -> str:
    low, high = versions
    first, last = max(field.since, low), high if field.until is None else min(field.until, high)
    if (first, last) == versions:
        return "all"
    return f"{first}+" if last == high else _span(first, last)


def _nullable(field: Field, versions: tuple[int, int]) -> str:
    if field.nullable is None:
        return ""
    return "yes" if field.nullable <= max(field.since, versions[0]) else f"{field.nullable}+"


def _errors() -> str:
    rows = (
        _row(code.value, code.name, "yes" if code.retriable else "", _escaped(code.sentence))
        for code in ErrorCode
    )
    return (
        "## Errors\n\n"
        "Retried: whether client libraries try again by themselves.\n\n"
        + ERRORS_HEAD
        + "".join(rows)
    )


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |\n"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def _escaped(text: str) -> str:
    """Escape table borders and bold type of Markdown in plain words."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("__", "\\_\\_")


if __name__ == "__main__":
    sys.stdout.write(render())
