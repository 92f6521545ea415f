"""Every code of the interface, provoked over a real socket."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.access.token_scopes import Scope, grants_of
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.values import NewTopic
from gateway.rest import incoming
from gateway.rest.codes import Code
from gateway.rest.consume.instances import MAX_PER_CALLER
from gateway.rest.limits import Limits, Rates
from tests.builders import tokens
from tests.database import sqlite_databases
from tests.fakes.broker_thread import broker_beside
from tests.fakes.whole_door import Told, WholeDoor, whole_door

pytestmark = pytest.mark.slow

CLUSTER: Final = "the-cluster-of-a-test1"
C: Final = f"/v3/clusters/{CLUSTER}"
V2: Final = "application/vnd.kafka.v2+json"
JSON_V2: Final = "application/vnd.kafka.json.v2+json"
AVRO_V2: Final = "application/vnd.kafka.avro.v2+json"
ONE: Final[dict[str, object]] = {"type": "JSON", "data": 1}
KEYED: Final = [{"key": "k", "value": "v"}]
OBJECT: Final = re.compile(r"{.*}")
# What no call over HTTP can bring about, and why.
UNREACHABLE: Final = {
    Code.BAD_JSON: "a body that is not JSON is 400; frames of sockets hold JSON within JSON",
    Code.NOT_SERIALIZABLE: "no schema registry",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One call, by an admin unless it says otherwise."""

    method: str = "GET"
    target: str
    body: object = None
    media_type: str = "application/json"
    accept: str = "*/*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    door: WholeDoor
    reader: str
    folder: Path
    silent: str

    def ask(self, one: Ask, **headers: str) -> Told:
        return self.door.ask(
            one.method,
            one.target,
            one.body,
            media_type=one.media_type,
            accept=one.accept,
            **headers,
        )

    def consumer(self, **draft: str) -> str:
        """Create a consumer; return its address."""
        made = self.door.ask("POST", "/rest/consumers/g", draft, media_type=V2).json()
        return f"/rest/consumers/g/instances/{made['instance_id']}"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("door")
    with (
        sqlite_databases(folder),
        socket.create_server(("127.0.0.1", 0)) as silent,
        broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": 1}) as broker,
        whole_door(folder, broker.bootstrap, cluster=CLUSTER) as door,
    ):
        # A broker that comes and goes takes the leader of its partition with it.
        broker.call(lambda: broker.running.twin.register_now(broker_id=2, port=1))
        made = NewTopic(name="leaderless", partitions=1, assignments=((2,),))
        Admin(Connection(bootstrap=broker.bootstrap)).create([made])
        broker.call(lambda: broker.running.twin.set_fenced(2, is_fenced=True))
        # A topic that takes no record of another time than now.
        strict = {"message.timestamp.before.max.ms": "1000"}
        Admin(Connection(bootstrap=broker.bootstrap)).create(
            [
                NewTopic(name="strict", partitions=1, configs=strict),
                NewTopic(name="__state", partitions=1),
            ]
        )
        door.token = tokens.token(grants=tokens.EVERYTHING)
        reader = tokens.token("reader", grants=grants_of(Scope.READ, "x"))
        yield Stage(
            door=door,
            reader=reader,
            folder=tmp_path_factory.mktemp("others"),
            silent=f"127.0.0.1:{silent.getsockname()[1]}",
        )


def v2_records(target: str, body: object, media_type: str = JSON_V2) -> Ask:
    return Ask(method="POST", target=target, body=body, media_type=media_type)


def record(topic: str, value: dict[str, object] = ONE, **others: object) -> Ask:
    """Return a call with one record, which is answered with that record's own status."""
    body = {"value": value} | others
    return Ask(method="POST", target=f"{C}/topics/{topic}/records", body=body)


# Each is the status and the code of its row's error body.
ASKED: Final[list[tuple[Code, Ask]]] = [
    (Code.BAD_REQUEST, Ask(method="POST", target=f"{C}/topics", body=b"{")),
    (Code.NOT_FOUND, Ask(target="/v3/nothing")),
    (Code.NOT_FOUND, Ask(target="/v3/clusters/another/topics")),
    (Code.METHOD_NOT_ALLOWED, Ask(method="PUT", target=f"{C}/topics", body={})),
    (Code.NOT_ACCEPTABLE, Ask(target=f"{C}/topics", accept="text/html")),
    (Code.TOO_LARGE, Ask(method="POST", target=f"{C}/topics", body=b" " * 1_048_577)),
    (Code.UNSUPPORTED_TYPE, Ask(method="POST", target=f"{C}/topics", body={}, media_type="a/b")),
    (Code.NEEDS_SOCKET, Ask(target="/ws/v1")),
    (Code.UNPROCESSABLE, v2_records("/rest/topics/orders", {})),
    (Code.KAFKA_REFUSED, Ask(method="POST", target=f"{C}/topics", body={"topic_name": "orders"})),
    (Code.KAFKA_REFUSED, Ask(target=f"{C}/acls")),
    (Code.NO_TOPIC, Ask(target="/rest/topics/nope")),
    (Code.NO_TOPIC, v2_records("/rest/topics/__nope", {"records": KEYED})),
    (Code.NEEDS_FORCE, Ask(method="DELETE", target=f"{C}/topics/__state")),
    (Code.NO_PARTITION, Ask(target="/rest/topics/orders/partitions/9")),
    (Code.NO_PARTITION, Ask(target=f"{C}/topics/orders/partitions/9")),
    (Code.NOT_THERE, Ask(target=f"{C}/topics/nope")),
    (Code.NOT_THERE, Ask(target="/rest/consumers/g/instances/nope/records")),
    (Code.NO_LEADER, Ask(target="/rest/topics/leaderless/partitions/0/offsets")),
    (Code.NO_LEADER, Ask(target=f"{C}/topics/leaderless/partitions/0/offset")),
    (Code.NO_GROUP, Ask(target=f"{C}/consumer-groups/nope")),
    (
        Code.CONSUMER_CONFIG,
        Ask(method="POST", target="/rest/consumers/g", body={"fetch.min.bytes": -2}, media_type=V2),
    ),
    (
        Code.BAD_CONSUMER_CONFIG,
        Ask(method="POST", target="/rest/consumers/g", body={"format": "avro"}, media_type=V2),
    ),
    (Code.NO_VALUE_SCHEMA, v2_records("/rest/topics/orders", {"records": KEYED}, AVRO_V2)),
    (
        Code.NO_KEY_SCHEMA,
        v2_records("/rest/topics/orders", {"records": KEYED, "value_schema": "{}"}, AVRO_V2),
    ),
    (
        Code.SERIALIZATION_TIMED_OUT,
        v2_records(
            "/rest/topics/orders",
            {"records": KEYED, "value_schema": "{}", "key_schema": "{}"},
            AVRO_V2,
        ),
    ),
    (Code.NO_PARTITION, record("orders", partition_id=9)),
    (Code.BAD_SCHEMA, record("orders", {"type": "AVRO", "data": 1})),
    (Code.BAD_PAYLOAD, record("orders", {"type": "BINARY", "data": "%"})),
    (Code.KAFKA_FAILED, record("strict", timestamp="2001-01-01T00:00:00Z")),
    (
        Code.BAD_BATCH,
        Ask(method="POST", target=f"{C}/topics/orders/records:batch", body={"entries": []}),
    ),
]


@pytest.mark.parametrize(("code", "asked"), ASKED)
def test_a_call_is_answered_with_its_code(stage: Stage, code: Code, asked: Ask) -> None:
    assert stage.ask(asked).code == (code.status, code.number)


def unknown_caller(stage: Stage) -> Told:
    return stage.ask(Ask(target=f"{C}/topics"), authorization="")


def caller_without_the_right(stage: Stage) -> Told:
    return stage.ask(Ask(target=f"{C}/brokers"), authorization=f"Bearer {stage.reader}")


def instance_that_exists(stage: Stage) -> Told:
    name = stage.consumer(name="twice").rpartition("/")[2]
    return stage.door.ask("POST", "/rest/consumers/g", {"name": name}, media_type=V2)


def instance_without_a_subscription(stage: Stage) -> Told:
    return stage.ask(Ask(target=f"{stage.consumer()}/records"))


def subscription_beside_an_assignment(stage: Stage) -> Told:
    consumer = stage.consumer()
    places = {"partitions": [{"topic": "orders", "partition": 0}]}
    done = stage.door.ask("POST", f"{consumer}/assignments", places, media_type=V2)
    assert done.status == 204
    topics = {"topics": ["orders"]}
    return stage.door.ask("POST", f"{consumer}/subscription", topics, media_type=V2)


def another_format_than_the_instance_has(stage: Stage) -> Told:
    consumer = stage.consumer(format="binary")
    return stage.ask(Ask(target=f"{consumer}/records", accept=JSON_V2))


def more_calls_than_a_second_has(stage: Stage) -> Told:
    still = Limits(Rates(requests=1), monotonic=lambda: 0.0)
    with whole_door(stage.folder, "127.0.0.1:1", cluster=CLUSTER, limits=still) as strict:
        strict.token = stage.door.token
        strict.ask("GET", "/rest/consumers/g/instances/nope/records")
        told = strict.ask("GET", "/rest/consumers/g/instances/nope/records")
        view = strict.ask("GET", f"{C}/topics")
    assert told.headers["retry-after"] == view.headers["retry-after"] == "1"
    assert view.code == told.code
    return told


def more_consumers_than_there_may_be(stage: Stage) -> Told:
    crowd = tokens.token("crowd", grants=tokens.EVERYTHING)
    create = Ask(method="POST", target="/rest/consumers/g", body={}, media_type=V2)
    for _ in range(MAX_PER_CALLER):
        assert stage.ask(create, authorization=f"Bearer {crowd}").status == 200
    return stage.ask(create, authorization=f"Bearer {crowd}")


def body_that_does_not_come(stage: Stage) -> Told:
    head = (
        f"POST {C}/topics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {stage.door.token}\r\nContent-Length: 9\r\n\r\n"
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(socket.create_connection(("127.0.0.1", stage.door.port), 60)) as line,
    ):
        patch.setattr(incoming, "START_S", 0.2)
        line.sendall(head.encode())
        told = b""
        while not told.endswith(b"}"):
            piece = line.recv(65_536)
            assert piece, told
            told += piece
    status, _, body = told.decode().partition(" ")[2].partition(" ")
    return Told(status=int(status), headers={}, body=OBJECT.findall(body)[0].encode())


def view_that_fails(stage: Stage) -> Told:
    def fail(_admin: Admin) -> Any:
        raise ZeroDivisionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Admin, "topics", fail)
        return stage.ask(Ask(target=f"{C}/topics"))


def brokers_that_are_nowhere(stage: Stage) -> Told:
    return asked_of(stage, "127.0.0.1:1")


def brokers_that_do_not_answer(stage: Stage) -> Told:
    return asked_of(stage, stage.silent)


def worker_that_is_still_starting(stage: Stage) -> Told:
    return asked_of(stage, "")


def asked_of(stage: Stage, bootstrap: str) -> Told:
    # One that is silent takes all of its time; one that refuses is known within a second or two.
    timeout_s = 1 if bootstrap == stage.silent else 10
    with whole_door(stage.folder, bootstrap, cluster=CLUSTER, timeout_s=timeout_s) as other:
        other.token = stage.door.token
        return other.ask("GET", f"{C}/topics")


PROVOKED: Final[list[tuple[Code, Callable[[Stage], Told]]]] = [
    (Code.NOT_AUTHENTICATED, unknown_caller),
    (Code.NOT_ALLOWED, caller_without_the_right),
    (Code.CONSUMER_EXISTS, instance_that_exists),
    (Code.ILLEGAL_STATE, instance_without_a_subscription),
    (Code.SUBSCRIBED_OTHERWISE, subscription_beside_an_assignment),
    (Code.OTHER_FORMAT, another_format_than_the_instance_has),
    (Code.TOO_MANY, more_calls_than_a_second_has),
    (Code.TOO_MANY_CONSUMERS, more_consumers_than_there_may_be),
    (Code.TIMED_OUT, body_that_does_not_come),
    (Code.INTERNAL, view_that_fails),
    (Code.NO_BROKER, brokers_that_are_nowhere),
    (Code.KAFKA_RETRY, brokers_that_do_not_answer),
    (Code.UNAVAILABLE, worker_that_is_still_starting),
]


@pytest.mark.parametrize(("code", "provoke"), PROVOKED)
def test_a_state_is_told_with_its_code(
    stage: Stage, code: Code, provoke: Callable[[Stage], Told]
) -> None:
    assert provoke(stage).code == (code.status, code.number)


def test_every_code_is_provoked_here_or_says_why_not() -> None:
    provoked = [code for code, *_ in [*ASKED, *PROVOKED]]

    assert set(provoked) | set(UNREACHABLE) == set(Code)
    assert not set(provoked) & set(UNREACHABLE)
