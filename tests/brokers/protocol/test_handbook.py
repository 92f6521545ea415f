"""The page docs/protocol.md and the words in the message modules that it is made of."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.protocol.apis import API_TABLE, Api
from brokers.protocol.handbook import IN_FULL, facts, notes, render
from brokers.protocol.schema import Field, Kind, Message

PAGE = Path(__file__).resolve().parents[3] / "docs" / "protocol.md"
RENEW = "python -m brokers.protocol.handbook > docs/protocol.md"

# Fields whose names leave no question, unless null or -1 is among their values.
SELF_EVIDENT = {"api_key", "broker_id", "cluster_id", "host", "index", "log_dir"}
SELF_EVIDENT |= {"name", "partition", "partition_index", "partition_indexes", "partitions", "port"}
SELF_EVIDENT |= {"producer_id", "topic", "topic_id", "config_resources", "resource_name"}
# Arrays of structures whose own fields say everything.
SELF_EVIDENT |= {"brokers", "partition_responses", "resources", "responses", "results", "topics"}

KAFKA_NULLS = (-1, None, -(2**31))


def fields_of(structure: type[Message]) -> Iterator[tuple[type[Message], Field]]:
    for field in structure.FIELDS:
        yield structure, field
        if isinstance(field.element, type):
            yield from fields_of(field.element)


def fields_of_api(api: Api) -> list[tuple[type[Message], Field]]:
    return [*fields_of(api.request), *fields_of(api.response)]


def changed_versions(api: Api) -> set[int]:
    """Versions whose layout differs from the version before."""
    changes = set() if api.flexible is None else {api.flexible}
    for _, field in fields_of_api(api):
        changes |= {field.since, -1 if field.until is None else field.until + 1}
        changes |= set() if field.nullable is None else {max(field.nullable, field.since)}
    low, high = api.versions
    return {version for version in changes if low < version <= high}


def documented() -> list[Api]:
    return [api for api in API_TABLE if api.name in IN_FULL]


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), f"renew it: {RENEW}"


def test_the_page_has_a_row_for_every_api_and_a_section_for_those_in_full() -> None:
    page = render()

    for api in API_TABLE:
        assert f"| {api.key} | " in page
        assert (f"\n## {api.name}\n" in page) == (api.name in IN_FULL)
    assert {api.name for api in documented()} == IN_FULL


def test_a_field_shows_type_versions_null_and_tag() -> None:
    page = render()

    assert "| `topics.partitions.high_watermark` | int64 | 18+ |  | 1 | " in page
    assert "| `topics` | array of MetadataRequestTopic | all | 1+ |  | " in page
    assert "| `topics.topic` | string | 4-12 |  |  | " in page


@pytest.mark.parametrize("api", API_TABLE, ids=lambda api: api.name)
def test_a_module_opens_with_what_its_api_is(api: Api) -> None:
    said = notes(api)

    assert said.facts == facts(api)
    assert re.fullmatch(r"[a-z].*\.", said.job)


@pytest.mark.parametrize("api", API_TABLE, ids=lambda api: api.name)
def test_every_version_with_another_layout_has_a_note(api: Api) -> None:
    noted = [number for number, _ in notes(api).versions]

    assert noted == sorted(set(noted))
    assert all(api.serves(version) for version in noted)
    assert changed_versions(api) <= set(noted)


@pytest.mark.parametrize("api", documented(), ids=lambda api: api.name)
def test_every_field_of_an_api_in_full_is_explained(api: Api) -> None:
    mute = [
        f"{structure.__name__}.{field.name}"
        for structure, field in fields_of_api(api)
        if not field.sentence and not is_self_evident(field)
    ]

    assert mute == []


def is_self_evident(field: Field) -> bool:
    has_null = field.nullable is not None or field.default in KAFKA_NULLS
    if field.kind in {Kind.ARRAY, Kind.STRUCT, Kind.RECORDS}:
        has_null = field.nullable is not None
    return field.name in SELF_EVIDENT and not has_null


@pytest.mark.parametrize("api", API_TABLE, ids=lambda api: api.name)
def test_sentences_are_sentences(api: Api) -> None:
    for structure, field in fields_of_api(api):
        if field.sentence:
            where = f"{structure.__name__}.{field.name}: {field.sentence}"
            assert re.match(r"[A-Z0-9-]|user|\w+\.", field.sentence), where
            assert field.sentence.endswith("."), where
            assert "  " not in field.sentence, where
