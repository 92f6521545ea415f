"""Settings of events: Debezium's words for the form of values, names and topics."""

from dataclasses import dataclass, field
from enum import Enum

from connectors.plugins.postgres import placeholders
from connectors.plugins.postgres.capture.relations import Operation


class Decimals(Enum):
    PRECISE = "precise"
    DOUBLE = "double"
    STRING = "string"


class Times(Enum):
    ADAPTIVE = "adaptive"
    ADAPTIVE_TIME_MICROSECONDS = "adaptive_time_microseconds"
    CONNECT = "connect"
    ISOSTRING = "isostring"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


class Binaries(Enum):
    BYTES = "bytes"
    BASE64 = "base64"
    BASE64_URL_SAFE = "base64-url-safe"
    HEX = "hex"


class Intervals(Enum):
    NUMERIC = "numeric"
    STRING = "string"


class Hstores(Enum):
    JSON = "json"
    MAP = "map"


class Adjustment(Enum):
    """How to adjust names that Avro does not allow."""

    NONE = "none"
    AVRO = "avro"
    AVRO_UNICODE = "avro_unicode"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSettings:
    prefix: str  # of topics, and the name of the server in each event
    database: str
    version: str  # of the connector, in each event
    decimals: Decimals = Decimals.PRECISE
    times: Times = Times.ADAPTIVE
    binaries: Binaries = Binaries.BYTES
    intervals: Intervals = Intervals.NUMERIC
    hstores: Hstores = Hstores.JSON
    has_unknown_types: bool = False
    placeholder: str = placeholders.DEFAULT
    has_tombstones: bool = True
    delimiter: str = "."
    schema_names: Adjustment = Adjustment.NONE
    field_names: Adjustment = Adjustment.NONE
    skipped: frozenset[Operation] = field(default_factory=lambda: frozenset({Operation.TRUNCATE}))
