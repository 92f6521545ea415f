"""Defines the configurable resources, and the checks that both requests to alter them share.

Knows resources and not their keys: the store decides from the tables of `cluster` which keys exist
and which values they take. This module refuses requests that contradict themselves, and those that
must be sent to another broker.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import Action, AlterConfigs, ConfigEdit, ConfigOperation, Outcome
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.server.admin_outcomes import error_fields, outcomes_of, refusal, repeated, shown
from brokers.server.call import Call
from brokers.server.context import Context

A = TypeVar("A")

# The requests carry no time limit; clients give them 30 s and repeat them then.
ALTER_TIMEOUT_MS: Final = 20_000
# Of the largest int32.
_MAX_DIGITS: Final = 10


class Kind(IntEnum):
    """Kafka's numbers for the types of configurable resources."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


# Why a resource of this kind has no keys yet, and Kafka's message for an unknown key.
_WITHOUT_KEYS: Final[Mapping[int, tuple[ErrorCode, str]]] = {
    Kind.BROKER_LOGGER: (
        ErrorCode.INVALID_CONFIG,
        "this broker has no loggers whose level can be set",
    ),
    Kind.CLIENT_METRICS: (
        ErrorCode.INVALID_REQUEST,
        "client metrics are not part of this release",
    ),
    Kind.GROUP: (
        ErrorCode.INVALID_CONFIG,
        "configuration of groups is not part of this release",
    ),
}
_STORED: Final[Mapping[int, ResourceType]] = {
    Kind.TOPIC: ResourceType.TOPIC,
    Kind.BROKER: ResourceType.BROKER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One key of a request, with the operation as encoded on the wire."""

    key: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """The changes of one resource in a request."""

    kind: int
    name: str
    edits: Sequence[Edit]
    replaces_all: bool


def check_is_here(context: Context, name: str) -> None:
    """Refuse the id of another broker: only that broker knows its start-up configs."""
    is_number = name.isascii() and name.isdigit() and len(name) <= _MAX_DIGITS
    if not is_number:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{shown(name)} is not a broker id, which is a number"
        )
    if int(name) != context.broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {context.broker_id}: ask broker {name} itself for its configuration",
        )


async def alter(
    context: Context,
    call: Call,
    alterations: Sequence[Alteration],
    answer: Callable[..., A],
    *,
    validate_only: bool,
) -> list[A]:
    """Alter resources and return a result for each, in order; of one, all keys change or none."""
    twice = repeated(_key(alteration) for alteration in alterations)
    parts = [
        _part(context, alteration, is_repeated=_key(alteration) in twice)
        for alteration in alterations
    ]
    outcomes = await outcomes_of(
        context, call, parts, timeout_ms=ALTER_TIMEOUT_MS, validate_only=validate_only
    )
    answers = []
    for alteration, outcome in zip(alterations, outcomes, strict=True):
        error, message = error_fields(outcome)
        answers.append(
            answer(
                error_code=error,
                error_message=message,
                resource_type=alteration.kind,
                resource_name=alteration.name,
            )
        )
    return answers


def _key(alteration: Alteration) -> str:
    return f"{alteration.kind} {alteration.name}"


def _part(context: Context, alteration: Alteration, *, is_repeated: bool) -> Action | Outcome:
    try:
        if is_repeated:
            raise _contradiction(f"resource {shown(alteration.name)} is listed twice")
        edits = tuple(map(_edit, alteration.edits))
        if alteration.kind in {Kind.BROKER, Kind.BROKER_LOGGER} and alteration.name:
            check_is_here(context, alteration.name)
        if alteration.kind == Kind.BROKER_LOGGER and alteration.replaces_all:
            raise _contradiction("the levels of loggers are altered one by one only")
        stored = _STORED.get(alteration.kind)
        if stored is None:
            return _nothing_stored(alteration)
    except KafkaError as error:
        return refusal(error.code, error.message)
    return AlterConfigs(
        resource_type=stored,
        name=alteration.name,
        edits=edits,
        replaces_all=alteration.replaces_all,
    )


def _edit(edit: Edit) -> ConfigEdit:
    try:
        operation = ConfigOperation(edit.operation)
    except ValueError:
        raise _contradiction(
            f"key {shown(edit.key)} has operation {edit.operation}: 0 sets, 1 deletes, 2 appends, 3"
            " subtracts"
        ) from None
    return ConfigEdit(key=edit.key, operation=operation, value=edit.value)


def _nothing_stored(alteration: Alteration) -> Outcome:
    found = _WITHOUT_KEYS.get(alteration.kind)
    if found is None:
        raise _contradiction(f"there is no resource type {alteration.kind}")
    error, reason = found
    if alteration.edits:
        return refusal(error, f"unknown key {shown(alteration.edits[0].key)}: {reason}")
    return Outcome()


def _contradiction(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
