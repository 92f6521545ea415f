"""Answers to `validate`, compared with what a real Connect 4.3 said of the same configs."""

from collections.abc import Mapping

import pytest

from connectors import validation
from connectors.components import Components, Described
from connectors.installed_parts import INSTALLED
from connectors.plugins.postgres.sink import PostgresSink
from connectors.plugins.spark.sink import SparkSink
from connectors.rest import shapes
from connectors.sdk import checks
from connectors.sdk.configs import Definition, Kind
from tests.connectors.invented import Blackhole, Lines, key

SOURCE = {"connector.class": "FileStreamSource", "name": "x", "topic": "t"}
SINK = {"connector.class": "FileStreamSink", "name": "x", "topics": "a"}


class Hoist:
    @classmethod
    def definition(cls) -> Definition:
        return Definition((key("field"),))


class Router:
    @classmethod
    def definition(cls) -> Definition:
        return Definition((key("replacement"), key("regex", check=checks.pattern)))


class Json:
    @classmethod
    def definition(cls) -> Definition:
        return Definition((key("schemas.enable", Kind.BOOLEAN, default=True, group="Schemas"),))


TRANSFORMS: dict[str, Described] = {
    "t.HoistField$Value": Hoist,
    "t.RegexRouter": Router,
    "RegexRouter": Router,
}
PARTS = Components(
    converters={"json.JsonConverter": Json},
    header_converters={"json.JsonConverter": Json},
    transforms=TRANSFORMS,
    predicates={"p.RecordIsTombstone": Json},
)


def errors_of(config: Mapping[str, str], *, is_deep: bool = False) -> dict[str, list[str]]:
    plugin = Blackhole if config.get("connector.class") == "FileStreamSink" else Lines
    found = validation.validate(plugin, config, components=PARTS, is_deep=is_deep)
    return {
        entry.key.name: list(entry.value.errors) for entry in found.entries if entry.value.errors
    }


@pytest.mark.parametrize(
    ("more", "errors"),
    [
        ({}, {}),
        (
            {"tasks.max": "foo"},
            {
                "tasks.max": [
                    "Invalid value foo for configuration tasks.max: Not a number of type INT",
                    "Invalid value null for configuration tasks.max: Value must be non-null",
                ]
            },
        ),
        (
            {"name": ""},
            {"name": ["Invalid value  for configuration name: String may not be empty"]},
        ),
        (
            {"transforms": "a,a", "transforms.a.type": "t.HoistField$Value"},
            {
                "transforms": [
                    "Invalid value [a, a] for configuration transforms: Duplicate alias provided."
                ],
                "transforms.a.field": [
                    (
                        'Missing required configuration "transforms.a.field" which has no default'
                        " value."
                    )
                ],
            },
        ),
        (
            {"transforms": "b", "transforms.b.type": "nope"},
            {
                "transforms.b.type": [
                    (
                        "Invalid value nope for configuration transforms.b.type: Class nope could"
                        " not be found."
                    )
                ]
            },
        ),
        (
            {
                "transforms": "a",
                "transforms.a.type": "t.HoistField$Value",
                "transforms.a.field": "f",
                "transforms.a.negate": "true",
            },
            {
                "transforms.a.type": [
                    (
                        "Config 'transforms.a.negate' was provided but there is no config"
                        " 'transforms.a.predicate' defining a predicate to be negated."
                    )
                ]
            },
        ),
        (
            {"key.converter": "nope"},
            {
                "key.converter": [
                    (
                        "Invalid value nope for configuration key.converter: Class nope could"
                        " not be found."
                    )
                ]
            },
        ),
        (
            {"value.converter": "json.JsonConverter", "value.converter.schemas.enable": "maybe"},
            {
                "value.converter.schemas.enable": [
                    (
                        "Invalid value maybe for configuration schemas.enable:"
                        " Expected value to be either true or false"
                    )
                ]
            },
        ),
        (
            {"exactly.once.support": "required"},
            {
                "exactly.once.support": [
                    "This worker does not have exactly-once source support enabled."
                ]
            },
        ),
    ],
)
def test_a_source_is_judged_as_by_kafka_connect(
    more: dict[str, str], errors: dict[str, list[str]]
) -> None:
    assert errors_of(SOURCE | more) == errors


@pytest.mark.parametrize(
    ("more", "errors"),
    [
        (
            {"topics": ""},
            {
                "topics": ["Must configure one of topics or topics.regex"],
                "topics.regex": ["Must configure one of topics or topics.regex"],
            },
        ),
        ({"topics": "a,a"}, {"topics": ["Configuration 'topics' values must not be duplicated."]}),
        ({"topics": "a,,b"}, {"topics": ["Configuration 'topics' values must not be empty."]}),
        (
            {"errors.deadletterqueue.topic.name": "a"},
            {
                "topics": [
                    (
                        "The DLQ topic 'a' may not be included in the list of topics ('topics=[a]')"
                        " consumed by the connector"
                    )
                ]
            },
        ),
        (
            {
                "topics": "a,connect-b.retry",
                "errors.deadletterqueue.topic.name": "connect-a.retry",
            },
            {
                "topics": [
                    (
                        "The topic 'connect-b.retry' has the name of a retry topic,"
                        " which only its connector reads: take it out of the list"
                    )
                ],
                "errors.deadletterqueue.topic.name": [
                    (
                        "The topic 'connect-a.retry' has the name of a retry topic, so a connector"
                        " would read the dead letters again at once: name another topic"
                    )
                ],
            },
        ),
        (
            {"topics": "", "topics.regex": "d.*", "errors.deadletterqueue.topic.name": "dlq"},
            {
                "topics.regex": [
                    (
                        "The DLQ topic 'dlq' may not be matched by the regex for the topics"
                        " ('topics.regex=d.*') consumed by the connector"
                    )
                ]
            },
        ),
    ],
)
def test_a_sink_is_judged_as_by_kafka_connect(
    more: dict[str, str], errors: dict[str, list[str]]
) -> None:
    assert errors_of(SINK | more) == errors


@pytest.mark.parametrize(
    ("more", "name", "words"),
    [
        ({"producer.override.bootstrap.servers": "evil:9092"}, None, "may not be overridden"),
        ({"consumer.override.sasl.jaas.config": "x"}, None, "may not be overridden"),
        ({"old.key": "1"}, None, "nobody needs it"),
        ({"tasks.max.enforce": "false"}, None, "raise tasks.max"),
        ({"tasks.max": "1001"}, None, "no more than 1000"),
        ({"offsets.storage.topic": "o"}, None, "leave it out"),
        ({"connection.password": "[hidden]"}, None, "none is stored: give the value itself"),
        ({"file": "${file:/etc/passwd:root}"}, None, "SAMSA_CONNECT_SECRET_DIRS"),
        ({"file": "${env:HOME}"}, None, "SAMSA_CONNECT_ENV_NAMES"),
        ({"topic.creation.default.partitions": "0"}, None, "between 1 and"),
        (
            {"topic.creation.groups": "g", "topic.creation.g.partitions": "x"},
            "topic.creation.g.partitions",
            "Not a number",
        ),
        ({"transforms": ",".join(map(str, range(60)))}, "transforms", "at most 50"),
    ],
)
def test_what_is_not_served_is_refused_by_its_key(
    more: dict[str, str], name: str | None, words: str
) -> None:
    found = errors_of(SOURCE | more)

    assert words in " ".join(found[name or next(iter(more))])


def test_a_pattern_that_would_never_end_is_matched_in_no_time() -> None:
    hostile = {
        "topics": "",
        "topics.regex": "(a+)+$",
        "errors.deadletterqueue.topic.name": "a" * 240 + "!",
    }

    assert errors_of(SINK | hostile) == {}


def test_a_reference_is_left_to_the_worker_and_shown_as_it_is() -> None:
    config = SOURCE | {"batch.size": "${secret:size}", "connection.password": "${secret:pw}"}

    found = validation.validate(Lines, config, components=PARTS, is_deep=True)

    values = {entry.key.name: entry.value.value for entry in found.entries}
    assert found.is_valid
    assert values["batch.size"] == "${secret:size}"
    assert "batch.size" not in found.parsed


@pytest.mark.parametrize(
    ("file", "name", "error"),
    [
        ("gone", "file", "there is no such file"),
        ("broken", "connector.class", "the folder is not there"),
        ("bug", "connector.class", "samsa.test.lines could not check its config: RuntimeError"),
    ],
)
def test_a_connectors_own_check_is_part_of_a_deep_look(file: str, name: str, error: str) -> None:
    assert errors_of(SOURCE | {"file": file}) == {}
    assert errors_of(SOURCE | {"file": file}, is_deep=True) == {name: [error]}


def test_passwords_are_known_by_definition_and_by_name_and_masked() -> None:
    config = SOURCE | {"connection.password": "s3cret", "my.token": "abc", "other": "1"}

    found = validation.validate(Lines, config, components=PARTS)

    assert found.secret_keys == {"connection.password", "my.token"}
    assert list(found.warnings) == ["my.token", "other"]
    shown = {entry.key.name: entry.value.value for entry in found.entries}
    assert shown["connection.password"] == "[hidden]"
    assert "s3cret" not in repr(found)


def test_unknown_keys_are_warned_about_with_the_similar_one() -> None:
    config = {
        "name": "s",
        "connector.class": "samsa.postgres.sink",
        "topics": "orders",
        "connection.url": "postgresql://db:5432/lake",
        "insert.mod": "upsert",
        "colour": "red",
        "truncate.enabled": "true",
        "transforms": "unwrap",
        "transforms.unwrap.type": "ExtractNewRecordState",
        "consumer.override.max.poll.records": "9",
        "sqlite.vacuum": "true",
    }
    found = validation.validate(PostgresSink, config, components=INSTALLED)

    assert found.errors == []
    assert found.warnings == {
        "insert.mod": "samsa.postgres.sink has no config insert.mod, so it has no effect:"
        " did you mean insert.mode?",
        "colour": "samsa.postgres.sink has no config colour, so it has no effect: correct its name,"
        " or leave it out",
        "sqlite.vacuum": "samsa.postgres.sink has no config sqlite.vacuum, so it has no effect:"
        " correct its name, or leave it out",
        "transforms.unwrap.truncate.handling.mode": "truncate.enabled is true, and the transform"
        " unwrap drops the event of a TRUNCATE: set"
        " transforms.unwrap.truncate.handling.mode=keep",
    }
    told = {one["value"]["name"]: one["value"] for one in shapes.validation("x", found)["configs"]}
    assert told["insert.mod"]["warnings"] == [found.warnings["insert.mod"]]
    assert told["insert.mod"]["errors"] == []
    assert "warnings" not in told["insert.mode"]


def test_keys_stand_in_the_order_and_groups_of_kafka_connect() -> None:
    config = SOURCE | {"transforms": "a", "transforms.a.type": "RegexRouter"}

    found = validation.validate(Lines, config, components=PARTS)

    names = [(entry.key.name, entry.order) for entry in found.entries]
    assert names[:4] == [
        ("name", 1),
        ("connector.class", 2),
        ("connector.plugin.version", 3),
        ("tasks.max", 4),
    ]
    assert found.groups[-1] == "Transforms: a"
    assert [one for one in names if one[0].startswith("transforms.a")] == [
        ("transforms.a.type", 0),
        ("transforms.a.plugin.version", 1),
        ("transforms.a.regex", 2),
        ("transforms.a.replacement", 3),
        ("transforms.a.negate", 4),
        ("transforms.a.predicate", 5),
    ]
    assert names[-5:] == [
        ("file", -1),
        ("topic", -1),
        ("batch.size", -1),
        ("connection.url", -1),
        ("connection.password", -1),
    ]


@pytest.mark.parametrize("key", ["transforms", "predicates", "value.converter"])
def test_a_job_refuses_what_it_would_pass_over(key: str) -> None:
    config = {"name": "x", "topics": "a", "table.path": "lake", key: "mask"}

    found = validation.validate(SparkSink, config, components=PARTS)

    wrong = [error for error in found.errors if error.startswith(f"{key} is set")]
    assert len(wrong) == 1
    bare = validation.validate(SparkSink, {**config, key: ""}, components=PARTS)
    assert not any("is set" in error for error in bare.errors)
