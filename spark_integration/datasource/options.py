"""The options of a source, with the names and meanings of Spark's own Kafka source.

Pure. An unknown name is refused: with a misspelt start, the source would read other records.
"""

import base64
import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from spark_integration.datasource.errors import OptionRefused
from spark_integration.datasource.wire.messages import EARLIEST, LATEST, TopicPartition
from spark_integration.datasource.wire.settings import SettingRefused, Settings, parse_settings

KAFKA: Final = "kafka."
# By lower-case name: Spark's options are case-insensitive.
NAMES: Final = {
    name.lower(): name
    for name in (
        *("assign", "subscribe", "subscribePattern"),
        *("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp"),
        *("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"),
        *("startingOffsetsByTimestampStrategy", "failOnDataLoss", "includeHeaders"),
        *("minPartitions", "maxRecordsPerPartition", "topicIds"),
        *("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"),
        *("kafkaConsumer.pollTimeoutMs", "queryId", "checkpointLocation"),
        # Without effect here: readers join no group, and have their own retry policy.
        *("groupIdPrefix", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
        "partition.metadata.cache.ttl.ms",
        # Options of the sink, for users who pass the same options to both.
        "topic",
    )
}
# Spark's own source refuses these too: they would change what is read.
REFUSED: Final = (
    "auto.offset.reset",
    "key.deserializer",
    "value.deserializer",
    "enable.auto.commit",
    "interceptor.classes",
)
UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
# What offsets may be besides numbers, for messages.
WORDS: Final = "earliest, latest or "
ID_BYTES: Final = 16
DURATION: Final = re.compile(r"\s*(\d+)\s*([a-z]*)\s*")


class Choice(Enum):
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"
    PATTERN = "subscribePattern"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The selection of topics; one of the fields is used."""

    choice: Choice
    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()


class Mark(Enum):
    # At the beginning or end of the log.
    PLACE = "place"
    OFFSETS = "offsets"
    TIMES = "times"
    # One time for all partitions.
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The begin or the end of the range to read."""

    mark: Mark
    # The name of its option, for messages.
    option: str
    # An end of the log, or a time in ms.
    value: int = 0
    # Offsets, where -1 and -2 mean the ends of the log, or times.
    values: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    settings: Settings
    selection: Selection
    starting: Bound
    ending: Bound
    is_late_allowed: bool
    fails_on_loss: bool
    has_headers: bool
    is_committed: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    max_bytes_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    patience_seconds: float
    # Either names a stream across restarts; empty if not given.
    query_id: str
    checkpoint: str
    # Which topics are meant by their names; others may be read by any id.
    topic_ids: Mapping[str, bytes]


def parse_options(raw: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    given = {name.lower(): str(value) for name, value in raw.items()}
    require_known(given)
    kafka = {name[len(KAFKA) :]: value for name, value in given.items() if name.startswith(KAFKA)}
    if refused := [name for name in REFUSED if name in kafka]:
        raise OptionRefused(
            f"kafka.{refused[0]} cannot be set: startingOffsets decides where the source begins,"
            " and it returns keys and values as bytes"
        )
    try:
        settings = parse_settings(kafka)
    except SettingRefused as error:
        raise OptionRefused(str(error)) from None
    starting = parse_bound(given, "starting", default=LATEST if is_stream else EARLIEST)
    ending = parse_bound(given, "ending", default=LATEST)
    require_bounds(given, starting, ending, is_stream=is_stream)
    return SourceOptions(
        settings=settings,
        selection=parse_selection(given),
        starting=starting,
        ending=ending,
        is_late_allowed=one_of(given, "startingOffsetsByTimestampStrategy", ("error", "latest"))
        == "latest",
        fails_on_loss=flag(given, "failOnDataLoss", default=True),
        has_headers=flag(given, "includeHeaders", default=False),
        is_committed=is_committed(kafka),
        min_partitions=count(given, "minPartitions"),
        max_records_per_partition=count(given, "maxRecordsPerPartition"),
        max_trigger_delay_ms=duration_ms(given, "maxTriggerDelay", "15m"),
        patience_seconds=duration_ms(given, "kafkaConsumer.pollTimeoutMs", "120000") / 1000,
        query_id=given.get("queryid", ""),
        checkpoint=given.get("checkpointlocation", ""),
        topic_ids=parse_topic_ids(given, is_stream=is_stream),
        **admission(given),
    )


def require_known(given: Mapping[str, str]) -> None:
    for name in given:
        if name.startswith(KAFKA) or name in NAMES:
            continue
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f": did you mean {NAMES[near[0]]}?" if near else "; see docs of format samsa"
        raise OptionRefused(f"unknown option {name}{hint}")


def parse_selection(given: Mapping[str, str]) -> Selection:
    chosen = [choice for choice in Choice if choice.value.lower() in given]
    if len(chosen) != 1:
        said = " and ".join(choice.value for choice in chosen) or "none"
        raise OptionRefused(
            f"give exactly one of subscribe, subscribePattern and assign to select topics;"
            f" {said} came"
        )
    (choice,) = chosen
    text = given[choice.value.lower()]
    if choice is Choice.PATTERN:
        try:
            re.compile(text)
        except re.error as error:
            raise OptionRefused(
                f"subscribePattern {text!r} is not a valid regex: {error}"
            ) from None
        return Selection(choice=choice, pattern=text)
    if choice is Choice.SUBSCRIBE:
        topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not topics:
            raise OptionRefused("subscribe names no topic: give names with commas between them")
        return Selection(choice=choice, topics=topics)
    named = parse_json(text, "assign", '{"topic": [0, 1]}')
    try:
        pairs = [(topic, int(index)) for topic, rows in named.items() for index in rows]
    except (TypeError, ValueError):
        raise OptionRefused(f'assign is {text!r}: give {{"topic": [0, 1]}}') from None
    return Selection(choice=choice, partitions=tuple(TopicPartition(*pair) for pair in pairs))


def parse_bound(given: Mapping[str, str], side: str, *, default: int) -> Bound:
    """Parse the options of one bound; of several, use the one that Spark's own source uses."""
    one, by_time, offsets = f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"
    if (text := given.get(one.lower())) is not None:
        return Bound(mark=Mark.TIME, option=one, value=whole_number(one, text))
    if (text := given.get(by_time.lower())) is not None:
        return Bound(mark=Mark.TIMES, option=by_time, values=parse_offsets(text, by_time))
    text = given.get(offsets.lower())
    if text is None or text.lower() in {"earliest", "latest"}:
        named = {None: default, "earliest": EARLIEST, "latest": LATEST}
        value = named[None if text is None else text.lower()]
        return Bound(mark=Mark.PLACE, option=offsets, value=value)
    return Bound(mark=Mark.OFFSETS, option=offsets, values=parse_offsets(text, offsets, WORDS))


def require_bounds(
    given: Mapping[str, str], starting: Bound, ending: Bound, *, is_stream: bool
) -> None:
    if is_stream:
        if said := [name for name in given if name.startswith("ending")]:
            raise OptionRefused(f"{NAMES[said[0]]} is for spark.read: a stream has no end")
        return
    if starting.value == LATEST or LATEST in starting.values.values():
        raise OptionRefused(
            f"{starting.option} cannot be latest (-1) in spark.read, where a batch ends: give"
            " earliest, or offsets"
        )
    if ending.value == EARLIEST or EARLIEST in ending.values.values():
        raise OptionRefused(
            f"{ending.option} cannot be earliest (-2), where a batch would be empty: give latest,"
            " or offsets"
        )


def parse_offsets(text: str, option: str, words: str = "") -> dict[TopicPartition, int]:
    """Parse `{"topic": {"0": 23}}`; `words` are other values of the option, for messages."""
    form = f'{words}{{"topic": {{"0": 23}}}}'
    named = parse_json(text, option, form)
    try:
        return {
            TopicPartition(topic, int(partition)): int(value)
            for topic, rows in named.items()
            for partition, value in rows.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise OptionRefused(f"{option} is {text!r}: give {form}") from None


def parse_topic_ids(given: Mapping[str, str], *, is_stream: bool) -> dict[str, bytes]:
    """Read ids as Kafka writes them: 16 bytes in base64, without padding."""
    text = given.get("topicids")
    if text is None:
        return {}
    if is_stream:
        raise OptionRefused("topicIds is for spark.read: a stream keeps the ids that it has seen")
    form = '{"topic": "0oF4Yk2mTSaX4Q9MEmzk1w"}'
    try:
        named = json.loads(text)
        ids = {name: base64.urlsafe_b64decode(f"{one}==") for name, one in named.items()}
    except (AttributeError, TypeError, ValueError):
        ids = {"": b""}
    if any(len(one) != ID_BYTES for one in ids.values()):
        raise OptionRefused(f"topicIds is {text!r}: give {form}")
    return ids


def parse_json(text: str, option: str, form: str) -> dict[str, Any]:
    try:
        named = json.loads(text)
    except ValueError:
        named = None
    if not isinstance(named, dict) or not named:
        raise OptionRefused(f"{option} is {text!r}: give {form}")
    return named


def admission(given: Mapping[str, str]) -> dict[str, int | None]:
    most = count(given, "maxOffsetsPerTrigger")
    fewest = count(given, "minOffsetsPerTrigger")
    if most is not None and fewest is not None and fewest > most:
        raise OptionRefused(
            f"minOffsetsPerTrigger is {fewest}, above maxOffsetsPerTrigger, which is {most}"
        )
    return {
        "max_offsets_per_trigger": most,
        "min_offsets_per_trigger": fewest,
        "max_bytes_per_trigger": count(given, "maxBytesPerTrigger"),
    }


def is_committed(kafka: Mapping[str, str]) -> bool:
    level = kafka.get("isolation.level", "read_uncommitted").lower()
    if level not in {"read_uncommitted", "read_committed"}:
        raise OptionRefused(
            f"kafka.isolation.level is {level!r}: give read_uncommitted or read_committed"
        )
    return level == "read_committed"


def flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in {"true", "false"}:
        raise OptionRefused(f"{name} is {text!r}: give true or false")
    return text == "true"


def one_of(given: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    text = given.get(name.lower(), allowed[0]).lower()
    if text not in allowed:
        raise OptionRefused(f"{name} is {text!r}: give {' or '.join(allowed)}")
    return text


def count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    value = whole_number(name, text)
    if value == 0:
        raise OptionRefused(f"{name} is 0: give a positive number, or leave it out")
    return value


def whole_number(name: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise OptionRefused(f"{name} is {text!r}: give a non-negative whole number")
    return int(text)


def duration_ms(given: Mapping[str, str], name: str, default: str) -> int:
    text = given.get(name.lower(), default)
    found = DURATION.fullmatch(text.lower())
    unit = UNITS_MS.get(found[2] or "ms") if found else None
    if found is None or unit is None:
        raise OptionRefused(f"{name} is {text!r}: give a time such as 500ms, 30s or 15m")
    return int(found[1]) * unit
