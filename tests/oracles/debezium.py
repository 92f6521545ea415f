"""Debezium's own PostgreSQL connector, which reads the same log as ours.

Its engine runs in the Java of the tests and puts events into a queue there.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from tests.oracles import java_connect
from tests.oracles.java import gateway, java_class

CLASS: Final = "io.debezium.connector.postgresql.PostgresConnector"
# How long an event may be on its way; a first one comes after a start of two seconds.
WAIT_S: Final = 30
# Headers that say which run of which task an event was read by.
OWN_HEADERS: Final = "__debezium.context."


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event as JSON with its schemas: what both sides are compared by."""

    topic: str
    key: Any
    value: Any
    headers: tuple[tuple[str, Any], ...]


class Debezium:
    """A running engine. Events are taken in their order."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def take(self, count: int) -> list[Told]:
        """Return so many events."""
        seconds = gateway().jvm.java.util.concurrent.TimeUnit.SECONDS
        told = []
        for number in range(count):
            event = self._queue.poll(WAIT_S, seconds)
            assert event is not None, f"event {number} of {count} did not come in {WAIT_S} s"
            told.append(_told(event.value()))
        return told


@contextmanager
def running_debezium(config: Mapping[str, str]) -> Iterator[Debezium]:
    """Run the connector with a config, which needs a name; its offsets end with it."""
    java = gateway().jvm.java
    queue = java.util.concurrent.LinkedBlockingQueue()
    properties = java.util.Properties()
    written = {
        "connector.class": CLASS,
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "plugin.name": "pgoutput",
        **config,
    }
    for name, text in written.items():
        properties.setProperty(name, text)
    connect = java.lang.Class.forName("io.debezium.embedded.Connect")
    builder = java_class("io.debezium.engine.DebeziumEngine").create(connect)
    engine = builder.using(properties).notifying(_into(queue)).build()
    thread = java.lang.Thread(engine)
    thread.setDaemon(True)
    thread.start()
    try:
        yield Debezium(queue)
    finally:
        # One that has ended by itself says so; a test notices by events that do not come.
        with suppress(Py4JJavaError):
            engine.close()
        thread.join()


def _into(queue: Any) -> Any:
    """Make Java's Consumer of a queue without compiling a class: by a handle of its method."""
    java = gateway().jvm.java
    handles = java.lang.invoke.MethodHandles.publicLookup()
    name = java.lang.Class.forName
    add = java.lang.invoke.MethodType.methodType(java.lang.Boolean.TYPE, name("java.lang.Object"))
    proxies = java.lang.invoke.MethodHandleProxies
    return proxies.asInterfaceInstance(
        name("java.util.function.Consumer"), handles.bind(queue, "add", add)
    )


def _told(record: Any) -> Told:
    return Told(
        topic=record.topic(),
        key=_json(record.keySchema(), record.key()),
        value=_json(record.valueSchema(), record.value()),
        headers=tuple(
            (header.key(), _json(header.schema(), header.value()))
            for header in record.headers().iterator()
            if not header.key().startswith(OWN_HEADERS)
        ),
    )


def _json(schema: Any, value: Any) -> Any:
    written = _converter().fromConnectData("t", schema, value)
    return None if written is None else json.loads(written)


@cache
def _converter() -> Any:
    config = {"schemas.enable": "true", "replace.null.with.default": "false"}
    return java_connect.converter(java_connect.JSON, config)
