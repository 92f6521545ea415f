"""What a worker of Kafka Connect and ours are asked alike, in this order; and answers made alike.

A step is a method, an address and a body. WAIT is for a real worker, which does things later.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Step = tuple[str, str, Any]
SOURCE: Final = {"connector.class": "FileStreamSource", "topic": "t", "file": "in.txt"}
SINK: Final = {"connector.class": "FileStreamSink", "topics": "t", "file": "out.txt"}
TRANSFORMS: Final = "org.apache.kafka.connect.transforms."
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
PLACE: Final = {"partition": {"filename": "in.txt"}}
PARTITION: Final = {"partition": {"kafka_topic": "t", "kafka_partition": 0}}
# Of each definition and value: what forms and tools act on, without the words of its documentation.
OF_DEFINITION: Final = (
    *("type", "required", "default_value", "importance", "group", "order_in_group", "width"),
    *("display_name", "dependents"),
)
LISTED: Final = ", available connectors are: "
OF_FIRST: Final = "org.apache.kafka.connect.errors.ConnectException: "
DEBEZIUM: Final = "io.debezium."
OF_VALUE: Final = ("value", "recommended_values", "errors", "visible")


def steps() -> list[Step]:
    found = [
        *_of_the_worker(),
        *_of_creation(),
        *(step for name in ("a", "nope") for step in _of_one(name)),
        *_of_configs(),
        *_of_offsets(),
        *_of_states(),
        *_of_validation(),
        *_of_the_end(),
    ]
    return [(step[0], step[1], step[2] if len(step) == 3 else None) for step in found]


def _of_the_worker() -> Iterator[tuple[Any, ...]]:
    for address in ("/", "/health", "/connectors", "/connectors/", "/bogus"):
        yield "GET", address
    yield "POST", "/"
    yield "GET", "/connectors?expand=info"
    yield "GET", "/connector-plugins/nope/config"
    yield "GET", "/admin/loggers/nope.x"
    yield "PUT", "/admin/loggers/root", {"level": "nope"}
    yield "PUT", "/admin/loggers/root", {}
    yield "PUT", "/admin/loggers/root?scope=cluster", {"level": "WARN"}


def _of_creation() -> Iterator[tuple[Any, ...]]:
    bodies: tuple[Any, ...] = (
        {"name": "a", "config": {}},
        {"name": "a", "config": {"connector.class": "nope"}},
        {"name": "a"},
        {},
        [],
        {"name": "a", "config": SOURCE, "bogus": 1},
        {"name": "a", "config": SOURCE, "initial_state": "NOPE"},
        {"name": "a", "config": SOURCE | {"name": "b"}},
        {"name": "a", "config": {"connector.class": "FileStreamSource", "file": "in.txt"}},
        {"name": "a", "config": SOURCE | {"tasks.max": 0}},
        {"name": "a", "config": SOURCE | {"tasks.max": "x", "errors.tolerance": "some"}},
        {"name": "a", "config": SOURCE | {"exactly.once.support": "required"}},
        {"name": "a", "config": SOURCE, "initial_state": "STOPPED"},
        {"name": "a", "config": SOURCE},
    )
    for body in bodies:
        yield "POST", "/connectors", body
    yield "POST", "/connectors/", {"name": "k", "config": SINK, "initial_state": "stopped"}
    yield "WAIT", "/connectors/a/status", "STOPPED"
    yield "WAIT", "/connectors/k/status", "STOPPED"
    for query in ("", "?expand=bogus", "?expand=status", "?expand=info&expand=status"):
        yield "GET", f"/connectors{query}"


def _of_one(name: str) -> Iterator[tuple[Any, ...]]:
    at = f"/connectors/{name}"
    for path in (
        *("", "/", "/config", "/tasks", "/status", "/tasks/0/status", "/tasks/x/status"),
        *("/tasks-config", "/offsets", "/topics", "/bogus", "/pause"),
    ):
        yield "GET", f"{at}{path}"
    yield "POST", f"{at}/tasks/9/restart"
    yield "PATCH", f"{at}/config", {"batch.size": "5"}
    yield "PATCH", f"{at}/config", {"batch.size": None}
    yield "PUT", at
    yield "POST", f"{at}/status"


def _of_configs() -> Iterator[tuple[Any, ...]]:
    at = "/connectors/a/config"
    bodies: tuple[Any, ...] = (
        SOURCE | {"batch.size": "7"},
        SOURCE | {"batch.size": 7},
        {},
        SOURCE | {"tasks.max": "x"},
        SOURCE | {"name": "z"},
        [],
    )
    for body in bodies:
        yield "PUT", at, body
    for patch in ({"batch.size": "x"}, {"topic": None}, {}):
        yield "PATCH", at, patch


def _of_offsets() -> Iterator[tuple[Any, ...]]:
    at = "/connectors/a/offsets"
    yield "PATCH", at, {"offsets": []}
    yield "PATCH", at, {}
    yield "PATCH", at, {"offsets": [PLACE | {"offset": {"position": 1}}]}
    # It returns offsets read back from its topic, a moment after they were altered.
    yield "WAIT", at, "position"
    yield "GET", at
    for entry in (
        {"partition": {"foo": "x"}, "offset": {"position": 1}},
        PLACE | {"offset": {"position": "z"}},
        PLACE | {"offset": {"position": -1}},
        PLACE | {"offset": None},
    ):
        yield "PATCH", at, {"offsets": [entry]}
    yield "PATCH", at, {"offsets": 5}
    yield "WAIT", at, '"offsets": []'
    yield "GET", at
    yield "DELETE", at
    yield "GET", at
    of_sink = "/connectors/k/offsets"
    of_group: tuple[dict[str, Any], ...] = (
        {"partition": {"foo": 1}, "offset": {"kafka_offset": 1}},
        {"partition": None, "offset": {"kafka_offset": 1}},
        {"offset": {}},
        {"partition": {"kafka_topic": "t", "kafka_partition": "x"}, "offset": {"kafka_offset": 1}},
        PARTITION | {"offset": {}},
        PARTITION | {"offset": {"kafka_offset": "x"}},
    )
    for entry in of_group:
        yield "PATCH", of_sink, {"offsets": [entry]}
    yield "PATCH", "/connectors/nope/offsets", {"offsets": [PLACE | {"offset": {}}]}
    yield "DELETE", "/connectors/nope/offsets"


def _of_states() -> Iterator[tuple[Any, ...]]:
    yield "PUT", "/connectors/p/config", SOURCE
    yield "WAIT", "/connectors/p/status", "RUNNING"
    yield "PATCH", "/connectors/p/offsets", {"offsets": [PLACE | {"offset": {"position": 1}}]}
    yield "DELETE", "/connectors/p/offsets"
    for name in ("p", "nope"):
        at = f"/connectors/{name}"
        yield "PUT", f"{at}/pause"
        yield "PUT", f"{at}/resume"
        yield "POST", f"{at}/restart"
        yield "POST", f"{at}/restart?includeTasks=bogus"
        yield "PUT", f"{at}/stop"
    yield "POST", "/connectors/nope/restart?includeTasks=true&onlyFailed=true"
    yield "PUT", "/connectors/p/topics/reset"


def _validate(config: Mapping[str, Any], plugin: str = "FileStreamSource") -> tuple[Any, ...]:
    return "PUT", f"/connector-plugins/{plugin}/config/validate", config


def _of_validation() -> Iterator[tuple[Any, ...]]:
    base = SOURCE | {"name": "x"}
    for more in _changes():
        yield _validate(base | more)
    for name in ("Cast", "Flatten", "ExtractField", "HeaderFrom", "HoistField", "InsertField"):
        yield _validate(base | {"transforms": "a", "transforms.a.type": f"{TRANSFORMS}{name}$Key"})
    for name in ("MaskField", "ReplaceField", "SetSchemaMetadata", "TimestampConverter"):
        yield _validate(
            base | {"transforms": "a", "transforms.a.type": f"{TRANSFORMS}{name}$Value"}
        )
    for name in ("DropHeaders", "Filter", "InsertHeader", "TimestampRouter", "ValueToKey"):
        yield _validate(base | {"transforms": "a", "transforms.a.type": f"{TRANSFORMS}{name}"})
    sink = SINK | {"name": "x"}
    dead = {"errors.deadletterqueue.topic.name": "t"}
    for more in (
        {},
        {"topics": ""},
        {"topics.regex": "b"},
        {"topics": "a,a"},
        {"topics": "a,,b"},
        dead,
        dead | {"topics": "", "topics.regex": "t.*"},
        {"errors.deadletterqueue.topic.replication.factor": "x"},
    ):
        yield _validate(sink | more, "FileStreamSink")
    yield _validate({"tasks.max": "1"})
    yield _validate(sink)
    yield _validate({"connector.class": "nope"}, "nope")


def _changes() -> Iterator[dict[str, Any]]:
    yield {}
    for key, text in (
        ("tasks.max", "foo"),
        ("name", ""),
        ("name", "a\tb"),
        ("key.converter", "nope"),
        ("key.converter", "JsonConverter"),
        ("key.converter", "Json"),
        ("key.converter", STRING),
        ("header.converter", ""),
        ("transforms", "a"),
        ("exactly.once.support", "required"),
        ("exactly.once.support", "bogus"),
        ("transaction.boundary", "connector"),
        ("transaction.boundary", "x"),
        ("transaction.boundary.interval.ms", "-1"),
        ("offsets.storage.topic", ""),
        ("config.action.reload", "zz"),
        ("errors.tolerance", "some"),
        ("errors.retry.timeout", "x"),
        ("errors.log.enable", "maybe"),
        ("batch.size", "x"),
        ("batch.size", {"a": 1}),
        ("unknown.key", "5"),
        ("producer.override.acks", "1"),
        ("producer.override.bootstrap.servers", "x:1"),
    ):
        yield {key: text}
    yield {"value.converter": JSON, "value.converter.schemas.enable": "maybe"}
    yield {"predicates": "p", "predicates.p.type": f"{TRANSFORMS}predicates.RecordIsTombstone"}
    yield {"predicates": "p", "predicates.p.type": f"{TRANSFORMS}predicates.HasHeaderKey"}
    for given in (
        {"transforms": "a,a", "type": f"{TRANSFORMS}HoistField$Value"},
        {"type": "nope"},
        {"type": "RegexRouter", "regex": "a", "replacement": "b"},
        {"type": f"{TRANSFORMS}HoistField$Value", "field": "f", "negate": "true"},
    ):
        names = given.pop("transforms", "a")
        yield {"transforms": names, **{f"transforms.a.{key}": v for key, v in given.items()}}


def _of_the_end() -> Iterator[tuple[Any, ...]]:
    yield "DELETE", "/connectors/nope"
    yield "DELETE", "/connectors"
    yield "PATCH", "/connectors", {}
    for name in ("a", "k", "p"):
        yield "DELETE", f"/connectors/{name}"
    yield "GET", "/connectors/a"
    yield "WAIT", "/connectors/a/status", "No status found"
    yield "GET", "/connectors"


def plain(body: Any) -> Any:
    """Return an answer without what differs between any two workers."""
    if isinstance(body, dict) and "configs" in body:
        return {
            "name": body["name"],
            "error_count": body["error_count"],
            "groups": sorted(body["groups"]),
            "keys": {
                name: _plain_key(name, one)
                for one in body["configs"]
                # There are versions of plugins in one of the two only.
                if not (name := one["value"]["name"]).endswith("plugin.version")
            },
        }
    if isinstance(body, dict):
        return {
            key: "…" if key in ("worker_id", "kafka_cluster_id", "version") else plain(value)
            for key, value in body.items()
        }
    if isinstance(body, str):
        # Which connectors there are, and what the first of several such questions has before it.
        return body.partition(LISTED)[0].removeprefix(OF_FIRST)
    if isinstance(body, list):
        return sorted(map(plain, body), key=str)
    return body


def place_of(location: str) -> str:
    """Return the path in a header Location, below whatever prefix there is."""
    return re.sub(r"^https?://[^/]+(/connect(?=/))?", "", location)


def _plain_key(name: str, one: Mapping[str, Any]) -> list[Any]:
    definition, value = one["definition"] or {}, dict(one["value"])
    if name in ("key.converter", "value.converter", "header.converter"):
        # Those of numbers are no plugins there, and may be named all the same.
        value["recommended_values"] = []
    # A worker with no jars but Kafka's has no transform of Debezium's.
    offered = value["recommended_values"]
    value["recommended_values"] = [word for word in offered if not word.startswith(DEBEZIUM)]
    return [
        *(definition.get(name) for name in OF_DEFINITION),
        *(value[name] for name in OF_VALUE),
    ]
