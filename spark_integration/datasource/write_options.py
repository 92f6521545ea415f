"""Checks the options and columns of a write before anything is sent. Pure.

Names are those of Spark's own Kafka sink; unsupported options are refused instead of ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spark_integration.datasource.encode import CODECS
from spark_integration.datasource.errors import OptionRefused
from spark_integration.datasource.wire.settings import Settings, parse_settings

CLIENT: Final = "kafka."
# Half of a topic's default limit.
BATCH_BYTES: Final = 500_000
# As in Kafka's clients: the buffer of one task for pending records.
BUFFER_BYTES: Final = 32 * 1024 * 1024
DELIVERY_MS: Final = 120_000
# A request cannot hold a batch of a gigabyte.
MAX_BATCH_BYTES: Final = 64 * 1024 * 1024
MAX_BUFFER_BYTES: Final = 1024 * 1024 * 1024
MAX_DELIVERY_MS: Final = 24 * 60 * 60 * 1000

# setting of Kafka's producer: (allowed values, why no others)
FIXED: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "acks": (("all", "-1"), "a record counts as written once all in-sync replicas have it"),
    "enable.idempotence": (("true",), "without it a retry could write a record twice"),
}
# setting of Kafka's producer: what to do instead
REFUSED: Final[Mapping[str, str]] = {
    "key.serializer": "cast the column key to binary or string",
    "value.serializer": "cast the column value to binary or string",
    "partitioner.class": "give a column partition",
    "interceptor.classes": "they are Java classes; transform the rows before the write",
    "transactional.id": "leave it out; each record is written at least once",
}
NO_TRANSACTIONS: Final = (
    "exactlyOnce is true, which needs transactions, and Samsa has none yet: leave it out, and each"
    " record is written at least once"
)
# column: its allowed types, as Spark spells them.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """Everything that a task needs to write, sent to executors."""

    settings: Settings
    # The topic of all rows; None if the rows name theirs.
    topic: str | None
    codec: int
    batch_bytes: int
    buffer_bytes: int
    delivery_ms: int
    # The known columns that are present.
    columns: frozenset[str]


def plan_write(
    options: Mapping[str, str], columns: Mapping[str, str], *, overwrite: bool
) -> WritePlan:
    """Check a write; `columns` has the column names and types, as Spark spells them."""
    if overwrite:
        raise OptionRefused('rows can only be added to a topic: give .mode("append")')
    lower = {name.lower(): value for name, value in options.items()}
    if lower.get("exactlyonce", "false").lower() != "false":
        raise OptionRefused(NO_TRANSACTIONS)
    client = {
        name.removeprefix(CLIENT): value for name, value in lower.items() if name.startswith(CLIENT)
    }
    require_settings(client)
    topic = lower.get("topic")
    require_columns(columns, has_topic=bool(topic))
    batch_bytes = parse_number(client, "batch.size", BATCH_BYTES, MAX_BATCH_BYTES)
    return WritePlan(
        settings=parse_settings(client),
        topic=topic or None,
        codec=parse_codec(client.get("compression.type", "none")),
        batch_bytes=batch_bytes,
        buffer_bytes=parse_number(client, "buffer.memory", BUFFER_BYTES, MAX_BUFFER_BYTES),
        delivery_ms=parse_number(client, "delivery.timeout.ms", DELIVERY_MS, MAX_DELIVERY_MS),
        columns=frozenset(columns) & frozenset(COLUMNS),
    )


def require_settings(client: Mapping[str, str]) -> None:
    for name, (allowed, why) in FIXED.items():
        if client.get(name, allowed[0]).lower() not in allowed:
            raise OptionRefused(
                f"kafka.{name} is {client[name]!r}, which can only be {allowed[0]}: {why}"
            )
    for name, instead in REFUSED.items():
        if name in client:
            raise OptionRefused(f"kafka.{name} is not supported: {instead}")


def require_columns(columns: Mapping[str, str], *, has_topic: bool) -> None:
    if "value" not in columns:
        raise OptionRefused(
            f"the columns {', '.join(columns) or '(none)'} have no column value: select what to"
            " write as value, such as to_json(struct(*)) AS value"
        )
    if not has_topic and "topic" not in columns:
        raise OptionRefused(
            'no topic to write to: give .option("topic", NAME), or each row its own in a column'
            " topic"
        )
    for name, allowed in COLUMNS.items():
        if name in columns and columns[name] not in allowed:
            raise OptionRefused(
                f"the column {name} is of type {columns[name]}: cast it to {' or '.join(allowed)}"
            )


def parse_codec(name: str) -> int:
    codec = CODECS.get(name.lower())
    if codec is None:
        raise OptionRefused(f"kafka.compression.type is {name!r}: give one of {', '.join(CODECS)}")
    return codec


def parse_number(client: Mapping[str, str], name: str, default: int, highest: int) -> int:
    text = client.get(name, str(default))
    if not text.isdecimal() or not 0 < int(text) <= highest:
        raise OptionRefused(f"kafka.{name} is {text!r}: give a number from 1 to {highest}")
    return int(text)
