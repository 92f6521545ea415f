"""Letters in a topic of dead letters, as tasks have left them, and a run without its workers."""

from datetime import datetime

from connectors.runtime.cluster_wire import ClusterWire
from connectors.runtime.dead_letters import PREFIX
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord
from tests.fakes.slice_ports import FakeWire

DEAD = "dead"


def bury(
    wire: FakeWire, value: bytes, *, partition: int = 0, key: bytes | None = None, **told: str
) -> None:
    """Add a letter; `told` are words of its cause, with `_` for `.`."""
    offset = len(wire.logs[DEAD][partition])
    context = {
        "topic": "in",
        "partition": "0",
        "offset": str(offset),
        "connector.name": "c",
        "stage": "VALUE_CONVERTER",
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
        "exception.message": "no JSON",
        **{name.replace("_", "."): text for name, text in told.items()},
    }
    headers = tuple((PREFIX + name, text.encode()) for name, text in context.items() if text)
    wire.put(DEAD, NewRecord(value=value, key=key, headers=headers, partition=partition))


def bury_at(connection: Connection, connector: str, *values: bytes) -> None:
    """Add letters of a connector to the topic of a running broker."""
    producer = TopicWriter(connection, DEAD)
    for number, value in enumerate(values):
        told = {
            "topic": "orders",
            "partition": "2",
            "offset": str(number),
            "connector.name": connector,
            "stage": "TASK_PUT",
            "exception.class.name": "java.io.IOException",
            "exception.message": "no",
            "exception.stacktrace": "no\n  at line 3",
        }
        headers = tuple((PREFIX + name, text.encode()) for name, text in told.items())
        producer.send(NewRecord(value=value, key=b"k", headers=headers))
    producer.flush()


class Messages:
    """The messages of the beat, which wait for a worker."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, int, datetime]] = []

    def redrive(self, worker: str, run: int, ticket: datetime) -> None:
        self.waiting.append((worker, run, ticket))


def work(connection: Connection, cluster: str) -> None:
    """Do what the beat and a worker do, until no run continues."""
    # Imported here: tests that use only a fake may not have set up Django.
    from connectors import models  # noqa: PLC0415
    from connectors.tasks import redrives  # noqa: PLC0415
    from connectors.tasks.slices import HostClock  # noqa: PLC0415

    models.Worker.objects.get_or_create(cluster=cluster, name="w", host="h", process_id=1)
    messages = Messages()
    redrives.plan(cluster, messages)
    while messages.waiting:
        worker, run, ticket = messages.waiting.pop(0)
        wire = ClusterWire(lambda: connection)
        again = redrives.run_slice(worker, run, ticket, wire=wire, clock=HostClock())
        if again is not None:
            messages.redrive(worker, run, again)
