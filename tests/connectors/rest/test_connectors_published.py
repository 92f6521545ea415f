"""Configs that others have published run over REST as they are.

Only hosts, credentials and the names of buckets are replaced. The database asks for the password,
so a connector that runs was told the right one.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import Any, Final

import psycopg
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from psycopg import sql

from cli.connect_client import Connect
from tests.builders import tokens
from tests.connectors.plugins.s3.bucket import KEY_ID, SECRET, a_bucket
from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.extras import requires
from tests.suite.services import shared_postgres

pytestmark = [requires("postgresql"), pytest.mark.slow]

PASSWORD: Final = "asgard"  # noqa: S105 - as it was published
# The words of Kafka Connect for what nobody may see.
MASK: Final = "[hidden]"
# Robin Moffatt's deep dive into the JDBC source.
JDBC_SOURCE: Final = {
    "name": "jdbc_source_postgres_01",
    "config": {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": "jdbc:postgresql://postgres:5432/postgres",
        "connection.user": "connect_user",
        "connection.password": PASSWORD,
        "topic.prefix": "postgres-01-",
        "poll.interval.ms": 3600000,
        "mode": "bulk",
    },
}
# Aiven's page about their JDBC source.
AIVEN_SOURCE: Final = {
    "name": "jdbc-source",
    "config": {
        "connector.class": "io.aiven.connect.jdbc.JdbcSourceConnector",
        "connection.url": "jdbc:postgresql://postgres:5432/defaultdb?sslmode=prefer",
        "connection.user": "avnadmin",
        "connection.password": "PG_PASSWORD",
        "mode": "incrementing",
        "table.whitelist": "test_table",
        "incrementing.column.name": "id",
        "topic.prefix": "jdbc_",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": False,
        "tasks.max": "1",
    },
}
# Confluent's example of their sink into PostgreSQL.
JDBC_SINK: Final = {
    "name": "postgres-sink",
    "config": {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "tasks.max": "1",
        "connection.url": "jdbc:postgresql://postgres/postgres?user=postgres&ssl=false",
        "connection.password": "postgres",
        "topics": "orders",
        "auto.create": "true",
    },
}
# Aiven's page about their JDBC sink.
AIVEN_SINK: Final = {
    "name": "jdbc-sink",
    "config": {
        "connector.class": "io.aiven.connect.jdbc.JdbcSinkConnector",
        "connection.url": "jdbc:postgresql://postgres:5432/test",
        "connection.user": "root",
        "connection.password": "secretpassword",
        "insert.mode": "insert",
        "table.name.format": "test_copy",
        "topics": "kafka-jdbc-input",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": False,
        "tasks.max": "1",
    },
}
# Confluent's quick start of the S3 sink.
S3_SINK: Final = {
    "name": "s3-sink",
    "config": {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "tasks.max": "1",
        "topics": "s3_topic",
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
# Debezium's page about their connector for PostgreSQL.
CAPTURE: Final = {
    "name": "fulfillment-connector",
    "config": {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "192.168.99.100",
        "database.port": "5432",
        "database.user": "postgres",
        "database.password": "postgres",
        "database.dbname": "postgres",
        "topic.prefix": "fulfillment",
        "table.include.list": "public.inventory",
    },
}
# Apache Kafka's quick start.
FILE_SOURCE: Final = {
    "name": "local-file-source",
    "config": {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": "test.txt",
        "topic": "connect-test",
    },
}
FILE_SINK: Final = {
    "name": "local-file-sink",
    "config": {
        "connector.class": "FileStreamSink",
        "tasks.max": "1",
        "file": "test.sink.txt",
        "topics": "connect-test",
    },
}
ORDER: Final = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int32"},
        {"field": "product", "type": "string"},
        {"field": "quantity", "type": "int32"},
        {"field": "price", "type": "float"},
    ],
}


class Published:
    """A home whose connectors are made over REST, and a database that asks for a password."""

    def __init__(self, home: ConnectorsHome, database: psycopg.Connection[Any], role: str) -> None:
        self.home = home
        self.database = database
        self.role = role
        token = tokens.token("tool", grants=tokens.EVERYTHING)
        self._rest = Connect(url=f"{home.cluster.console.rstrip('/')}/connect", token=token)

    def post(self, published: dict[str, Any], **replaced: str) -> str:
        """Send what was published with the database of the test, or with other replacements."""
        config = dict(published["config"])
        if "connection.url" in config:
            info = self.database.info
            url = f"jdbc:postgresql://{info.host}:{info.port}/{info.dbname}"
            replaced |= {"connection_url": url, "connection_user": self.role}
            replaced |= {"connection_password": PASSWORD}
        if "database.hostname" in config:
            info = self.database.info
            replaced |= {"database_hostname": info.host, "database_port": str(info.port)}
            replaced |= {"database_user": self.role, "database_password": PASSWORD}
            replaced |= {"database_dbname": info.dbname}
        config |= {key.replace("_", "."): value for key, value in replaced.items()}
        status, _ = self._rest.answer("POST", "connectors", body={**published, "config": config})
        assert status == 201
        return str(published["name"])

    def config(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self._rest.ask("GET", "connectors", name, "config")
        return found

    def put(self, name: str, config: dict[str, str]) -> None:
        """Change a config, and wait until the task that had the former one has ended."""
        self._rest.ask("PUT", "connectors", name, "config", body=config)

        def is_planned() -> bool:
            tasks = self.home.tasks(name)
            return all(task.generation == task.connector.generation for task in tasks)

        self.home.wait(is_planned, "new tasks")
        self.home.wait(self.home.has_run_since(name), "a new task to run")

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        found = self.database.execute("SELECT to_regclass(%s)", (table,)).fetchone()
        if found is None or found[0] is None:
            return []
        query = sql.SQL("SELECT * FROM {} ORDER BY 1").format(sql.Identifier(table))
        return self.database.execute(query).fetchall()

    def produce(self, topic: str, *values: object) -> None:
        producer = Producer({"bootstrap.servers": self.home.connection.bootstrap})
        for value in values:
            producer.produce(topic, json.dumps(value).encode())
        assert producer.flush(30) == 0

    def consume(self, topic: str, count: int) -> list[Any]:
        """Return the values of the first records of a topic, which may not be there yet."""
        with consumer_of(self.home) as consumer:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            found: list[Any] = []

            def has_all() -> bool:
                messages = consumer.consume(count, timeout=0.1)
                # An error is a topic that is not there yet.
                found.extend(json.loads(one.value() or b"") for one in messages if not one.error())
                return len(found) >= count

            self.home.wait(has_all, f"{count} records of {topic}")
        return found


@contextmanager
def consumer_of(home: ConnectorsHome) -> Iterator[Consumer]:
    where = {"bootstrap.servers": home.connection.bootstrap, "group.id": "reader"}
    consumer = Consumer({**where, "enable.auto.commit": False})
    try:
        yield consumer
    finally:
        consumer.close()


@contextmanager
def guarded_database(name: str) -> Iterator[psycopg.Connection[Any]]:
    """Make a database whose owner needs a password, as its role of the same name."""
    server = shared_postgres()
    with psycopg.connect(server.url, autocommit=True) as admin:
        # Another worker may make it at the same moment.
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            admin.execute("CREATE ROLE guarded")
        role = sql.Identifier(name)
        admin.execute(
            # As `postgres` is, whose credentials these stand for.
            sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {} IN ROLE guarded").format(
                role, PASSWORD
            )
        )
        url = server.make_database(name)
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                yield connection
        finally:
            # A capture leaves its slot, which keeps its database.
            slots = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            admin.execute(f"{slots} WHERE database = %s", (name,))
            server.drop_database(name)
            admin.execute(sql.SQL("DROP ROLE {}").format(role))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    # Roles belong to the server of all workers, of which another one may run this file too.
    folder, name = tmp_path_factory.mktemp("home"), f"published_{token_hex(4)}"
    allowed = {"SAMSA_CONNECT_TARGETS": "127.0.0.1"}
    started = connectors_home(folder, has_web=True, environment=allowed)
    with guarded_database(name) as database, started as home:
        yield Published(home, database, name)


def test_rows_of_all_tables_become_records(published: Published) -> None:
    published.database.execute("CREATE TABLE accounts (id int PRIMARY KEY, name text)")
    published.database.execute("INSERT INTO accounts VALUES (1, 'Hamish'), (2, 'Anthony')")

    published.post(JDBC_SOURCE)

    first, second = published.consume("postgres-01-accounts", 2)
    assert first["payload"] == {"id": 1, "name": "Hamish"}
    assert second["payload"] == {"id": 2, "name": "Anthony"}
    assert [field["type"] for field in first["schema"]["fields"]] == ["int32", "string"]


def test_rows_are_copied_by_the_configs_of_aiven(published: Published) -> None:
    published.database.execute("CREATE TABLE test_table (id int PRIMARY KEY, name varchar(255))")
    published.database.execute("CREATE TABLE test_copy (id bigint, name text)")
    published.database.execute("INSERT INTO test_table VALUES (1, 'test-user')")

    published.post(AIVEN_SOURCE)
    (record,) = published.consume("jdbc_test_table", 1)
    published.produce("kafka-jdbc-input", record)
    published.post(AIVEN_SINK)

    published.home.wait(lambda: bool(published.rows("test_copy")), "a row")
    assert published.rows("test_copy") == [(1, "test-user")]


def test_a_config_that_was_read_and_edited_still_knows_its_password(published: Published) -> None:
    order = {"id": 999, "product": "foo", "quantity": 100, "price": 50}
    published.produce("orders", {"schema": ORDER, "payload": order})
    name = published.post(JDBC_SINK)
    published.home.wait(lambda: bool(published.rows("orders")), "a row")

    config = published.config(name)
    assert config["connection.password"] == MASK
    published.put(name, {**config, "table.name.format": "edited_${topic}"})
    published.produce("orders", {"schema": ORDER, "payload": {**order, "id": 1000}})

    published.home.wait(lambda: bool(published.rows("edited_orders")), "a row")
    assert published.rows("orders") == [(999, "foo", 100, 50.0)]
    assert published.rows("edited_orders") == [(1000, "foo", 100, 50.0)]
    assert published.config(name)["connection.password"] == MASK


def test_changes_of_a_table_become_events(published: Published) -> None:
    published.database.execute("CREATE TABLE inventory (id int PRIMARY KEY, quantity int)")
    published.database.execute("INSERT INTO inventory VALUES (1, 10)")
    topic = "fulfillment.public.inventory"

    published.post(CAPTURE)
    (read,) = published.consume(topic, 1)
    published.database.execute("UPDATE inventory SET quantity = 9")
    _, updated = published.consume(topic, 2)

    assert (read["payload"]["op"], read["payload"]["after"]) == ("r", {"id": 1, "quantity": 10})
    assert (updated["payload"]["op"], updated["payload"]["after"]["quantity"]) == ("u", 9)
    assert published.config("fulfillment-connector")["database.password"] == MASK


def test_records_become_objects_of_three(
    published: Published, unique: Callable[[str], str]
) -> None:
    schema = {"type": "struct", "fields": [{"field": "f1", "type": "string"}]}
    values = [{"schema": schema, "payload": {"f1": f"value{number}"}} for number in range(1, 10)]
    published.produce("s3_topic", *values)

    with a_bucket(unique("published").lower().replace("_", "-")) as bucket:
        published.post(
            S3_SINK,
            s3_bucket_name=bucket.name,
            store_url=bucket.url,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
        )
        folder = "topics/s3_topic/partition=0/s3_topic+0+"
        wanted = [f"{folder}{start:010}.json" for start in (0, 3, 6)]
        published.home.wait(lambda: bucket.names() == wanted, "three objects")

        assert bucket.read(wanted[0]) == b'{"f1":"value1"}\n{"f1":"value2"}\n{"f1":"value3"}\n'


def test_lines_of_a_file_become_lines_of_another_one(published: Published) -> None:
    files = published.home.folder / "files"
    files.mkdir(mode=0o700, exist_ok=True)
    (files / "test.txt").write_text("foo\nbar\n", "utf-8")

    published.post(FILE_SOURCE)
    published.post(FILE_SINK)

    copied = files / "test.sink.txt"
    published.home.wait(lambda: copied.exists() and bool(copied.read_bytes()), "lines")
    published.home.wait(lambda: copied.read_text("utf-8") == "foo\nbar\n", "both lines")
    assert published.consume("connect-test", 1)[0]["payload"] == "foo"
