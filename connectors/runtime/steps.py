"""Converts records of topics for a sink, and records of a source for topics.

A failed step names its stage and class in Connect's terms, which dead letters repeat.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from connectors.runtime.retry_topic import Origin, without
from connectors.sdk.errors import DataError
from connectors.sdk.records import Header, SinkRecord, SourceRecord
from connectors.sdk.records import Record as AnyRecord
from connectors.sdk.schemas import Schema
from gateway.kafka.values import Header as RawHeader
from gateway.kafka.values import NewRecord, Record


class Stage(Enum):
    """The stage at which a record failed; the names are Connect's."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


class StepFailed(Exception):
    """A step failed on a record; the cause has the details."""

    def __init__(self, stage: Stage, class_name: str, cause: Exception) -> None:
        super().__init__(f"{stage.value}: {cause}")
        self.stage = stage
        self.class_name = class_name
        self.cause = cause


class Converter(Protocol):
    def to_value(
        self, topic: str, payload: bytes | None, headers: Sequence[RawHeader] = ()
    ) -> tuple[Schema | None, Any]: ...

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None: ...


class Chain(Protocol):
    def apply(self, record: AnyRecord) -> AnyRecord | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """All steps of a connector. For a record that a transform drops they return None."""

    key: Converter
    value: Converter
    header: Converter
    chain: Chain

    def incoming(self, read: Record, *, origin: Origin | None = None) -> SinkRecord | None:
        """Convert a record for a sink. Raises StepFailed. `origin` is set if it was sent again."""
        raw = read
        if origin is not None:
            raw = replace(read, topic=origin.topic, headers=without(read.headers))
        stage, step = Stage.KEY_CONVERTER, self.key
        try:
            key_schema, key = self.key.to_value(raw.topic, raw.key, raw.headers)
            stage, step = Stage.VALUE_CONVERTER, self.value
            value_schema, value = self.value.to_value(raw.topic, raw.value, raw.headers)
            stage, step = Stage.HEADER_CONVERTER, self.header
            headers = self._headers(raw)
        # A step is foreign code; any exception is a failure of the record.
        except Exception as error:
            raise StepFailed(stage, _class_of(step), error) from error
        first = None if origin is None else origin.place
        record = SinkRecord(
            topic=raw.topic,
            partition=raw.partition if first is None else first.partition,
            key=key,
            key_schema=key_schema,
            value=value,
            value_schema=value_schema,
            timestamp_ms=raw.timestamp_ms,
            headers=headers,
            origin_topic=read.topic,
            origin_partition=read.partition,
            origin_offset=read.offset,
            retried=first,
        )
        changed = self._transformed(record)
        assert changed is None or isinstance(changed, SinkRecord), "a transform keeps the class"
        return changed

    def outgoing(self, record: SourceRecord) -> tuple[str, NewRecord] | None:
        """Return the topic and bytes for a record of a source. Raises StepFailed."""
        changed = self._transformed(record)
        if changed is None:
            return None
        topic = changed.topic
        stage, step = Stage.KEY_CONVERTER, self.key
        try:
            key = self.key.from_value(topic, changed.key_schema, changed.key)
            stage, step = Stage.VALUE_CONVERTER, self.value
            value = self.value.from_value(topic, changed.value_schema, changed.value)
            stage, step = Stage.HEADER_CONVERTER, self.header
            headers = tuple(
                (header.name, self.header.from_value(topic, header.schema, header.value))
                for header in changed.headers
            )
        # As above.
        except Exception as error:
            raise StepFailed(stage, _class_of(step), error) from error
        return topic, NewRecord(
            value=value,
            key=key,
            headers=headers,
            partition=changed.partition,
            timestamp_ms=changed.timestamp_ms,
        )

    def _headers(self, raw: Record) -> tuple[Header, ...]:
        if raw.has_unread_headers:
            # They would be lost without notice.
            raise DataError("the name of a header is not UTF-8, so none could be read")
        return tuple(self._header(raw.topic, header) for header in raw.headers)

    def _header(self, topic: str, header: RawHeader) -> Header:
        schema, value = self.header.to_value(topic, header[1])
        return Header(name=header[0], value=value, schema=schema)

    def _transformed(self, record: AnyRecord) -> AnyRecord | None:
        try:
            return self.chain.apply(record)
        # As above.
        except Exception as error:
            # The chain names the transform that failed.
            name = getattr(error, "class_name", None) or _class_of(self.chain)
            raise StepFailed(Stage.TRANSFORMATION, str(name), error) from error


def _class_of(step: object) -> str:
    """Return the class name that the config has for a step, if the step knows it."""
    name = getattr(step, "name", None)
    return name if isinstance(name, str) else f"{type(step).__module__}.{type(step).__qualname__}"
