"""Configs as the authors of Java's connectors publish them: they are taken as they are."""

from typing import Final

import pytest

from connectors import registry
from connectors.installed_parts import INSTALLED
from connectors.sdk import checks
from connectors.validation import validate

CONFIGS: Final[dict[str, dict[str, str]]] = {
    "FileStream source": {
        "name": "local-file-source",
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": "test.txt",
        "topic": "connect-test",
    },
    "FileStream sink": {
        "name": "local-file-sink",
        "connector.class": "FileStreamSink",
        "tasks.max": "1",
        "file": "test.sink.txt",
        "topics": "connect-test",
    },
    "JDBC source": {
        "name": "jdbc-source",
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "tasks.max": "1",
        "connection.url": "jdbc:postgresql://db.example.com:5432/shop",
        "connection.user": "connect",
        "connection.password": "s3cret",
        "mode": "timestamp+incrementing",
        "timestamp.column.name": "modified",
        "incrementing.column.name": "id",
        "topic.prefix": "shop-",
        "table.whitelist": "orders,customers",
        "poll.interval.ms": "5000",
    },
    "JDBC sink": {
        "name": "jdbc-sink",
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "tasks.max": "1",
        "topics": "orders",
        "connection.url": "jdbc:postgresql://db.example.com:5432/shop",
        "connection.user": "connect",
        "connection.password": "s3cret",
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "pk.fields": "id",
        "auto.create": "true",
    },
    "Debezium PostgreSQL": {
        "name": "inventory-connector",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": "postgres",
        "database.port": "5432",
        "database.user": "postgres",
        "database.password": "postgres",
        "database.dbname": "postgres",
        "topic.prefix": "dbserver1",
        "schema.include.list": "inventory",
        "plugin.name": "pgoutput",
    },
    "S3 sink": {
        "name": "s3-sink",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "tasks.max": "1",
        "topics": "s3_topic",
        # The published one leaves them to the environment of its worker.
        "aws.access.key.id": "AKIAIOSFODNN7EXAMPLE",
        "aws.secret.access.key": "${secret:s3}",
        "s3.region": "us-west-2",
        "s3.bucket.name": "confluent-kafka-connect-s3-testing",
        "s3.part.size": "5242880",
        "flush.size": "3",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
        "schema.compatibility": "NONE",
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_published_config_is_taken_as_it_is(name: str) -> None:
    config = CONFIGS[name]
    plugin = registry.find(config["connector.class"])
    assert plugin is not None

    found = validate(plugin, config, components=INSTALLED)

    assert found.errors == []
    assert found.warnings == {}


@pytest.mark.parametrize("connector", ["Source", "Sink"])
@pytest.mark.parametrize("company", ["confluent", "aiven"])
def test_a_config_names_the_connector_of_either_company(company: str, connector: str) -> None:
    plugin = registry.find(f"io.{company}.connect.jdbc.Jdbc{connector}Connector")

    assert plugin is not None
    assert plugin.name == f"samsa.postgres.{connector.lower()}"


@pytest.mark.parametrize(
    ("connector", "key", "value", "reason"),
    [
        ("Source", "sql.quote.identifiers", "false", "names are quoted"),
        ("Source", "table.names.qualify", "false", "table names include their schema"),
        ("Source", "timestamp.initial.ms", "1", "use timestamp.initial"),
        ("Source", "incrementing.initial", "1", "use a query to leave some out"),
        ("Sink", "sql.quote.identifiers", "false", "names are quoted"),
        ("Sink", "table.name.normalize", "true", "tables have the names of their topics"),
        ("Sink", "topics.to.tables.mapping", "a:b", "RegexRouter"),
    ],
)
def test_keys_of_aiven_that_are_not_honoured_are_refused(
    connector: str, key: str, value: str, reason: str
) -> None:
    config = CONFIGS[f"JDBC {connector.lower()}"]
    name = f"io.aiven.connect.jdbc.Jdbc{connector}Connector"
    plugin = registry.find(name)
    assert plugin is not None

    found = validate(plugin, {**config, "connector.class": name, key: value}, components=INSTALLED)

    (error,) = found.errors
    assert error.startswith(
        (f"Configuration {key}", f"Invalid value {value} for configuration {key}")
    )
    assert reason in error


def test_every_default_passes_the_check_of_its_own_key() -> None:
    for plugin in registry.classes():
        for key in plugin.definition():
            if not key.is_required:
                assert checks.check(key, checks.default_of(key)) is None, key.name
