"""Converts JSON, with the schema in each message, in the config, or without one.

Schemas are cached: messages that begin with the same bytes have the same schema.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from connectors.runtime.converters.json_reader import Reader, has_decimals, make_reader
from connectors.runtime.converters.json_schemas import SchemaReader, schema_text
from connectors.runtime.converters.json_writer import Writer, make_writer, plain_text
from connectors.runtime.converters.plain import TYPE_KEY
from connectors.runtime.values.numbers import MAX_DIGITS, parse_decimal, wrapped
from connectors.runtime.values.structs import Derived
from connectors.sdk.checks import in_range, one_of_ignoring_case
from connectors.sdk.configs import Definition, Importance, Key, Kind, Width
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.schemas import Schema

K = TypeVar("K", bytes, str)

# One cached schema takes kilobytes; this is what a host can spare for one task.
MAX_CACHE: Final = 100_000
# Characters of all cached schemas: an object takes twenty times its JSON, and any client that may
# write to the topic may send many large ones.
MAX_KEPT_CHARS: Final = 4 * 1024 * 1024
# Numbers of 64 bits have at most this many digits.
_LONG_DIGITS: Final = 19
_HAS_LONG_DIGITS: Final = re.compile(rb"[0-9]{%d}" % _LONG_DIGITS)
# Patterns up to the schema and the payload; some writers put blanks there.
_SCHEMA_START: Final = re.compile(rb'\s*\{\s*"schema"\s*:')
_PAYLOAD_START: Final = re.compile(rb',\s*"payload"\s*:')

KEYS: Final = Definition(
    (
        TYPE_KEY,
        Key(
            name="schemas.enable",
            kind=Kind.BOOLEAN,
            default=True,
            importance=Importance.HIGH,
            doc="Whether each message holds its schema beside its value.",
            group="Schemas",
            width=Width.MEDIUM,
            display_name="Enable Schemas",
        ),
        Key(
            name="schemas.cache.size",
            kind=Kind.INT,
            default=1000,
            importance=Importance.HIGH,
            doc="The number of cached schemas.",
            group="Schemas",
            width=Width.MEDIUM,
            display_name="Schema Cache Size",
        ),
        Key(
            name="schema.content",
            kind=Kind.STRING,
            default=None,
            importance=Importance.HIGH,
            doc="The schema of all messages, as JSON, which then hold their value alone. Where it "
            "is not set, each message holds its own. For sinks with schemas.enable=true.",
            group="Schemas",
            width=Width.MEDIUM,
            display_name="Schema Content",
        ),
        Key(
            name="decimal.format",
            kind=Kind.STRING,
            default="BASE64",
            importance=Importance.LOW,
            doc="The format of written decimals: BASE64 for their bytes, NUMERIC for a JSON "
            "number. Both are accepted when reading.",
            check=one_of_ignoring_case("NUMERIC", "BASE64"),
            group="Serialization",
            width=Width.MEDIUM,
            display_name="Decimal Format",
        ),
        Key(
            name="replace.null.with.default",
            kind=Kind.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether a null becomes the default of its schema, where it has one.",
            group="Serialization",
            width=Width.MEDIUM,
            display_name="Replace null with default",
        ),
    )
)
_check_cache: Final = in_range(1, MAX_CACHE)


class JsonConverter:
    name = "org.apache.kafka.connect.json.JsonConverter"

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._has_schemas: bool = parsed["schemas.enable"]
        self._fills: bool = parsed["replace.null.with.default"]
        self._is_numeric = parsed["decimal.format"].upper() == "NUMERIC"
        if wrong := _check_cache(parsed["schemas.cache.size"]):
            raise ConfigError(f"schemas.cache.size: {wrong}")
        self._max_kept: int = parsed["schemas.cache.size"]
        self._writers = Derived(self._make_writer, max_kept=self._max_kept)
        self._starts = Derived(self._envelope_start, max_kept=self._max_kept)
        self._schemas = SchemaReader(lambda schema: make_reader(schema, fills=self._fills))
        # Schemas by the bytes before the payload, and by their JSON with sorted keys.
        self._by_start: _Kept[bytes] = _Kept(self._max_kept)
        self._by_text: _Kept[str] = _Kept(self._max_kept)
        self._content = self._schema_of_config(parsed["schema.content"])

    def _schema_of_config(self, text: str | None) -> "_Known | None":
        if not text or not self._has_schemas:
            return None
        try:
            return self._known(self._schemas.read(_parse(text.encode(), is_exact=True)))
        except DataError as error:
            raise ConfigError(f"schema.content is not a schema: {error}") from error

    def to_value(
        self, topic: str, payload: bytes | None, headers: Iterable[Any] = ()
    ) -> tuple[Schema | None, Any]:
        del topic, headers
        if payload is None:
            return None, None
        try:
            if not self._has_schemas:
                return None, _parse(payload)
            if self._content is not None:
                known = self._content
                return known.schema, known.read(_parse(payload, is_exact=known.is_exact))
            return self._read_envelope(payload)
        except RecursionError as error:
            raise DataError("JSON is nested too deep") from error

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        del topic
        if schema is None and value is None:
            return None
        try:
            text = plain_text(value) if schema is None else self._writers(schema)(value)
            if not self._has_schemas:
                return text.encode()
            start = '{"schema":null,"payload":' if schema is None else self._starts(schema)
            return f"{start}{text}}}".encode()
        except RecursionError as error:
            raise DataError("a value is nested too deep for JSON") from error
        except UnicodeEncodeError as error:
            raise DataError(f"a text holds half of a surrogate pair: {error}") from error

    def _known(self, schema: Schema | None) -> "_Known":
        if schema is None:
            return _Known(None, lambda told: told, False)
        return _Known(schema, make_reader(schema, fills=self._fills), has_decimals(schema))

    def _make_writer(self, schema: Schema) -> Writer:
        return make_writer(schema, fills=self._fills, is_numeric=self._is_numeric)

    def _envelope_start(self, schema: Schema) -> str:
        text = schema_text(schema, lambda one, value: self._make_writer(one)(value))
        return f'{{"schema":{text},"payload":'

    def _read_envelope(self, payload: bytes) -> tuple[Schema | None, Any]:
        found = _PAYLOAD_START.search(payload) if _SCHEMA_START.match(payload) else None
        split = found.start() if found else 0
        start = payload[:split]
        known = self._by_start.get(start)
        if known is not None:
            told = _parse(b"{" + payload[split + 1 :], is_exact=known.is_exact)
            # With more keys it is no envelope; the slow path reports that.
            if len(told) == 1:
                return known.schema, known.read(told["payload"])
        told = _parse(payload)
        if not isinstance(told, dict) or told.keys() != {"schema", "payload"}:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may '
                "not contain additional fields. If you are trying to deserialize plain JSON data, "
                "set schemas.enable=false in your converter configuration."
            )
        known = self._schema(told["schema"], payload)
        if start and _is_whole_schema(start, told["schema"]):
            self._by_start.put(start, known)
        if known.is_exact:
            told = _parse(payload, is_exact=True)
        return known.schema, known.read(told["payload"])

    def _schema(self, told: Any, payload: bytes) -> "_Known":
        text = json.dumps(told, sort_keys=True)
        known = self._by_text.get(text)
        if known is None:
            # Parse numbers as decimals, since a decimal's default may be a number.
            exact = _parse(payload, is_exact=True)["schema"]
            known = self._known(self._schemas.read(exact))
            self._by_text.put(text, known)
        return known


@dataclass(frozen=True, slots=True)
class _Known:
    """A cached schema, its reader, and whether numbers are parsed as decimals."""

    schema: Schema | None
    read: Reader
    is_exact: bool


class _Kept(Generic[K]):
    """A cache of schemas, which drops the oldest beyond its limits of number and size."""

    def __init__(self, max_kept: int) -> None:
        self._max_kept = max_kept
        self._chars = 0
        self._kept: dict[K, _Known] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> _Known | None:
        return self._kept.get(key)

    def put(self, key: K, known: _Known) -> None:
        if len(key) > MAX_KEPT_CHARS or key in self._kept:
            return
        self._kept[key] = known
        self._chars += len(key)
        while len(self._kept) > self._max_kept or self._chars > MAX_KEPT_CHARS:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._chars -= len(oldest)


def _is_whole_schema(start: bytes, told: Any) -> bool:
    """Return whether the schema is complete in the bytes before the payload."""
    try:
        return bool(_parse(start + b"}") == {"schema": told})
    except DataError:
        return False


def _long(text: str) -> int:
    """Parse a whole number like Java: beyond 64 bits, the lowest bits remain."""
    if len(text) > MAX_DIGITS:
        raise DataError(f"a number of {len(text)} digits, at most {MAX_DIGITS} are read")
    return wrapped(int(text), 64)


def _exact_whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise DataError(f"a number of {len(text)} digits, at most {MAX_DIGITS} are read")
    return int(text)


def _real(text: str) -> float:
    if len(text) > MAX_DIGITS:
        raise DataError(f"a number of {len(text)} digits, at most {MAX_DIGITS} are read")
    return float(text)


def _refuse(word: str) -> float:
    raise DataError(f"JSON has no number {word}")


_FAST: Final = json.JSONDecoder(parse_constant=_refuse)
_CAREFUL: Final = json.JSONDecoder(parse_constant=_refuse, parse_int=_long, parse_float=_real)
_EXACT: Final = json.JSONDecoder(
    parse_constant=_refuse, parse_float=parse_decimal, parse_int=_exact_whole
)
_BLANKS: Final = " \t\n\r"


def _parse(payload: bytes, *, is_exact: bool = False) -> Any:
    """Parse JSON; ignore what follows the first value, as Jackson does."""
    plain = _CAREFUL if _HAS_LONG_DIGITS.search(payload) else _FAST
    decoder = _EXACT if is_exact else plain
    try:
        text = payload.decode(json.detect_encoding(payload)).lstrip(_BLANKS)
        return decoder.raw_decode(text)[0]
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}"
        ) from error
