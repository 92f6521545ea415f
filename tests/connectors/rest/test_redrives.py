"""Dead letters over REST: look, plan, start, and what is said of bad input, with a real broker."""

from collections.abc import Mapping
from typing import Any

import pytest

from connectors import models
from connectors.models import RunState
from connectors.runtime.cluster_wire import ClusterWire
from connectors.runtime.retry_topic import origin_in
from connectors.sdk.records import TopicPartition
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.values import NewTopic, Record, Span
from tests.fakes.dead_letters import DEAD, bury_at, work
from tests.gateway.rest.asking import CLUSTER, Api

pytestmark = pytest.mark.slow
SINK = {
    "connector.class": "samsa.test.blackhole",
    "topics": "orders",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": DEAD,
    "errors.deadletterqueue.context.headers.enable": "true",
}


@pytest.fixture(scope="module")
def dead(connection: Connection) -> str:
    """Make a topic with letters of any connector: each test has a connector of its own."""
    Admin(connection).create([NewTopic(name=DEAD, partitions=1, replication_factor=1)])
    return DEAD


def create(connect: Api, name: str) -> str:
    answer = connect("POST", "/connectors", {"name": name, "config": SINK})
    assert answer.status_code == 201, answer.content
    return f"/samsa/connectors/{name}"


def read(connection: Connection, topic: str, partition: int = 0) -> list[Record]:
    wire, place = ClusterWire(lambda: connection), TopicPartition(topic=topic, partition=partition)
    start, end = wire.bounds([place])[place]
    spans = [Span(partition=partition, start=start, end=end)]
    return [record for records in wire.read(topic, spans) for record in records]


def plan(connect: Api, at: str, **asked: Any) -> Mapping[str, Any]:
    answer = connect("POST", f"{at}/redrives/plan", asked)
    assert answer.status_code == 200, answer.content
    made: Mapping[str, Any] = answer.json()
    return made


def test_letters_are_seen_planned_and_sent_once(
    connect: Api, connection: Connection, dead: str
) -> None:
    at = create(connect, "whole")
    bury_at(connection, "whole", b"a", b"b")

    seen = connect.get(f"{at}/dead-letters?stage=TASK_PUT&exception=IOException")
    made = plan(connect, at)
    started = connect("POST", f"{at}/redrives", {"seal": made["seal"]})
    work(connection, CLUSTER)
    done = connect.get(f"{at}/redrives/{started.json()['run']}")

    mine = [one for one in seen["letters"] if one["connector"] == "whole"]
    assert [one["value"]["text"] for one in mine] == ["b", "a"]
    assert (mine[0]["topic"], mine[0]["topic_partition"], mine[0]["unsent"]) == ("orders", 2, None)
    assert (seen["topic"], seen["exists"]) == (dead, True)
    assert (made["letters"], made["targets"]) == (2, {"connect-whole.retry": 2})
    assert (made["creates_topic"], made["denied"]) == (True, "")
    assert started.status_code == 202
    assert (done["state"], done["sent"], done["percent"]) == ("DONE", 2, 100)
    records = read(connection, "connect-whole.retry")
    assert [record.value for record in records] == [b"a", b"b"]
    origin = origin_in(records[1].headers)
    assert origin is not None
    assert (origin.topic, origin.partition, origin.offset) == ("orders", 2, 1)
    assert [one["state"] for one in connect.get(f"{at}/redrives")] == ["DONE"]


def test_to_the_origin_the_plan_names_who_reads_there(
    connect: Api, connection: Connection, dead: str
) -> None:
    del dead
    at = create(connect, "back")
    bury_at(connection, "back", b"x")

    made = plan(connect, at, destination="origin")
    started = connect("POST", f"{at}/redrives", {"seal": made["seal"]})
    work(connection, CLUSTER)

    assert [group["group"] for group in made["groups"]] == ["billing"]
    assert started.json()["destination"] == "origin"
    [record] = read(connection, "orders", 2)
    assert (record.key, record.value, record.headers) == (b"k", b"x", ())


def test_a_run_is_stopped_and_resumed(connect: Api, connection: Connection, dead: str) -> None:
    del dead
    at = create(connect, "held")
    bury_at(connection, "held", b"x")
    started = connect("POST", f"{at}/redrives", {"seal": plan(connect, at)["seal"]}).json()
    here = f"{at}/redrives/{started['run']}"

    stopped = connect("PUT", f"{here}/stop").json()
    resumed = connect("PUT", f"{here}/resume")

    assert (stopped["state"], resumed.status_code) == ("STOPPED", 202)
    assert models.Redrive.objects.get().state == RunState.RUNNING


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"destination": "elsewhere"}, "give retry or origin"),
        ({"bogus": 1}, "a plan has the fields"),
        ({"offsets": 5}, "has to be a list of objects"),
        ({"offsets": [{"partition": -1}]}, "give a whole number from 0 on"),
        ({"offsets": [{"partition": 0}, {"partition": 0}]}, "twice"),
        ({"letters": [{"partition": 0, "offset": True}]}, "give a whole number"),
        ({"stage": 5}, "has to be a text"),
    ],
)
def test_a_plan_that_is_none_is_refused(
    connect: Api, dead: str, body: Mapping[str, Any], said: str
) -> None:
    del dead
    at = create(connect, "wrong")

    answer = connect("POST", f"{at}/redrives/plan", body)

    assert answer.status_code == 400
    assert said in answer.json()["message"]


def test_a_seal_that_is_none_or_of_another_connector_starts_nothing(
    connect: Api, connection: Connection, dead: str
) -> None:
    del dead
    one, other = create(connect, "one"), create(connect, "other")
    bury_at(connection, "one", b"x")
    sealed = plan(connect, one)["seal"]

    answers = [
        connect("POST", f"{one}/redrives", {}),
        connect("POST", f"{one}/redrives", {"seal": "x"}),
        connect("POST", f"{other}/redrives", {"seal": sealed}),
        connect("GET", f"{one}/redrives/999999"),
        connect("GET", f"{one}/dead-letters?before=x"),
    ]

    assert [answer.status_code for answer in answers] == [400, 400, 400, 404, 400]
    assert not models.Redrive.objects.exists()


class TestSomebodyWithFewRights:
    @pytest.fixture
    def rights(self) -> Rights:
        return Rights(
            [
                Grant(operation=Operation.VIEW, kind=Kind.CONNECTOR, pattern="*"),
                Grant(operation=Operation.CREATE_CONNECTORS, kind=Kind.CONNECTOR, pattern="*"),
            ]
        )

    def test_letters_are_records_and_not_shown(self, connect: Api, dead: str) -> None:
        del dead
        models.Connector.objects.create(
            cluster=CLUSTER, name="few", kind="sink", plugin="samsa.test.blackhole", config=SINK
        )

        answers = [
            connect("GET", "/samsa/connectors/few/dead-letters"),
            connect("POST", "/samsa/connectors/few/redrives/plan", {}),
            connect("GET", "/samsa/connectors/few/redrives"),
        ]

        assert [answer.status_code for answer in answers] == [403, 403, 200]
        assert "read payloads" in answers[0].json()["message"]
