"""Converts headers to texts, and parses the values of texts."""

from collections.abc import Iterable
from typing import Any

from connectors.runtime.values import literals
from connectors.runtime.values.texts import header_text
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import BYTES, Schema


class SimpleHeaderConverter:
    name = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

    def to_value(
        self, topic: str, payload: bytes | None, headers: Iterable[Any] = ()
    ) -> tuple[Schema | None, Any]:
        del topic, headers
        if payload is None:
            return None, None
        try:
            return literals.parse(payload.decode("utf-8", "replace"))
        except (DataError, RecursionError):
            # A header is no reason to lose a record: pass it unchanged, as bytes.
            return BYTES, payload

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        del topic
        if value is None:
            return None
        try:
            return header_text(value, schema).encode()
        except (RecursionError, UnicodeEncodeError) as error:
            raise DataError(f"a header cannot be written as text: {error}") from error
