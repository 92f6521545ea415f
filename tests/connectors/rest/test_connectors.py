"""Connectors over REST: the statuses, bodies and messages of Kafka Connect 4.3."""

from typing import Any

import pytest
from django.db.models import F

from connectors import models
from connectors.models import State
from connectors.runtime.record_parts import marked
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from tests.gateway.rest.asking import CLUSTER, Api

SOURCE = {"connector.class": "Lines", "topic": "t", "connection.password": "s3cret"}
SHOWN = {**SOURCE, "connection.password": "[hidden]", "name": "a"}


def create(connect: Api, name: str = "a", **more: Any) -> Any:
    answer = connect("POST", "/connectors", {"name": name, "config": SOURCE, **more})
    assert answer.status_code == 201, answer.content
    return answer


def said(answer: Any) -> tuple[int, str]:
    body = answer.json()
    assert set(body) == {"error_code", "message"}
    assert body["error_code"] == answer.status_code
    return answer.status_code, body["message"]


def test_a_connector_is_made_and_found_again(connect: Api) -> None:
    made = create(connect)

    info = {"name": "a", "config": SHOWN, "tasks": [], "type": "source"}
    assert made.json() == info
    assert made["Location"] == "http://testserver/connect/connectors/a"
    assert connect.get("/connectors") == ["a"]
    assert connect.get("/connectors/") == ["a"]
    assert connect.get("/connectors/a") == info
    assert connect.get("/connectors/a/config") == SHOWN
    assert connect.get("/connectors/a/tasks") == []
    state = {"state": "UNASSIGNED", "worker_id": "-", "version": "1.0"}
    status = {"name": "a", "connector": state, "tasks": [], "type": "source"}
    assert connect.get("/connectors/a/status") == status
    assert connect.get("/connectors?expand=info&expand=status") == {
        "a": {"info": info, "status": status}
    }
    assert connect.get("/connectors?expand=bogus") == {"a": {}}
    assert connect.get("/connectors/a/topics") == {"a": {"topics": []}}
    assert connect.get("/connectors/a/offsets") == {"offsets": []}


def test_a_name_of_any_characters_is_one_name(connect: Api) -> None:
    made = create(connect, "a/b c")

    assert made["Location"] == "http://testserver/connect/connectors/a%2Fb%20c"
    assert connect.get("/connectors/a%2Fb%20c")["name"] == "a/b c"


def test_an_initial_state_is_a_target(connect: Api) -> None:
    for word, state in (("STOPPED", "STOPPED"), ("paused", "PAUSED"), (None, "UNASSIGNED")):
        create(connect, f"c-{word}", initial_state=word)
        assert connect.get(f"/connectors/c-{word}/status")["connector"]["state"] == state


def test_a_config_is_put_patched_and_put_back_with_its_mask(connect: Api) -> None:
    made = connect("PUT", "/connectors/a/config", SOURCE)
    assert (made.status_code, made["Location"][-13:]) == (201, "/connectors/a")
    shown = connect.get("/connectors/a/config")

    put = connect("PUT", "/connectors/a/config", {**shown, "batch.size": 5})
    patched = connect("PATCH", "/connectors/a/config", {"file": "f", "batch.size": None})

    assert (put.status_code, put.json()["config"]) == (200, {**SHOWN, "batch.size": "5"})
    assert (patched.status_code, patched.json()["config"]) == (200, {**SHOWN, "file": "f"})


def test_states_are_changed_with_the_statuses_of_kafka_connect(connect: Api) -> None:
    create(connect)

    for method, path, status in (
        ("PUT", "pause", 202),
        ("PUT", "resume", 202),
        ("PUT", "stop", 204),
        ("POST", "restart", 204),
        ("POST", "restart?includeTasks=bogus", 204),
        ("PUT", "topics/reset", 202),
    ):
        answer = connect(method, f"/connectors/a/{path}")
        assert (path, answer.status_code, answer.content) == (path, status, b"")
    for query in ("includeTasks=true", "onlyFailed=true", "includeTasks=true&onlyFailed=true"):
        answer = connect("POST", f"/connectors/a/restart?{query}")
        assert (answer.status_code, answer.json()["name"]) == (202, "a")
    assert connect("DELETE", "/connectors/a").status_code == 204
    assert said(connect("GET", "/connectors/a")) == (404, "Connector a not found")


def test_a_task_that_a_worker_is_about_to_create_is_unassigned(connect: Api) -> None:
    connect("PUT", "/connectors/a/config", {**SOURCE, "tasks.max": "2"})

    for number in (0, 1):
        assert connect.get(f"/connectors/a/tasks/{number}/status") == {
            "id": number,
            "state": "UNASSIGNED",
            "worker_id": "-",
            "version": "1.0",
        }
        assert connect("POST", f"/connectors/a/tasks/{number}/restart").status_code == 204
    assert connect("GET", "/connectors/a/tasks/2/status").status_code == 404
    # Those that it has none of are known once it was asked for its tasks.
    models.Connector.objects.update(planned_generation=F("generation"))
    assert connect("GET", "/connectors/a/tasks/1/status").status_code == 404
    assert connect("POST", "/connectors/a/tasks/1/restart").status_code == 404


def test_a_failed_task_shows_its_trace_and_is_restarted(connect: Api) -> None:
    create(connect)
    row = models.Connector.objects.get()
    models.Task.objects.create(
        connector=row, number=0, generation=1, state=State.FAILED, worker="w:1", trace="boom"
    )

    failed = connect.get("/connectors/a/tasks/0/status")
    restarted = connect("POST", "/connectors/a/tasks/0/restart")

    assert failed == {
        "id": 0,
        "state": "FAILED",
        "worker_id": "w:1",
        "version": "1.0",
        "trace": "boom",
    }
    assert restarted.status_code == 204
    assert connect.get("/connectors/a/tasks/0/status")["state"] == "RESTARTING"
    assert connect.get("/connectors/a/tasks") == [
        {"id": {"connector": "a", "task": 0}, "config": SHOWN}
    ]


def test_running_task_that_does_no_work_says_so_beside_the_members_of_kafka_connect(
    connect: Api,
) -> None:
    create(connect)
    figures = {
        "retrying": {
            "since_ms": 1_700_000_000_000,
            "tries": 3,
            "reason": "no answer",
            "next_ms": 1_700_000_010_000,
        },
        "losses": {
            "era": "1/0",
            "minutes": [[1, 50, 0], [2, 50, 9]],
            "since_ms": 1_700_000_000_000,
            "last_ms": 1_700_000_005_000,
            "lost": 12,
            "dead": 10,
            "causes": [["values are not JSON", "set value.converter", 12]],
        },
    }
    row = models.Connector.objects.get()
    told = {"generation": 1, "state": State.RUNNING, "worker": "w:1", "figures": figures}
    models.Task.objects.create(connector=row, number=0, **told)

    (task,) = connect.get("/connectors/a/status")["tasks"]

    assert task == {
        "id": 0,
        "state": "RUNNING",
        "worker_id": "w:1",
        "version": "1.0",
        "retrying": {
            "since": "2023-11-14T22:13:20+00:00",
            "attempts": 3,
            "reason": "no answer",
            "next_attempt": "2023-11-14T22:13:30+00:00",
        },
        "losing": {
            "since": "2023-11-14T22:13:20+00:00",
            "last": "2023-11-14T22:13:25+00:00",
            "read": 100,
            "lost": 9,
            "lost_since": 12,
            "dead_letters_since": 10,
            "causes": [
                {"reason": "values are not JSON", "advice": "set value.converter", "records": 12}
            ],
        },
    }


def test_offsets_are_altered_and_reset_while_stopped(connect: Api) -> None:
    create(connect, initial_state="STOPPED")
    entry = {"partition": {"file": "x"}, "offset": {"position": 1}}

    altered = connect("PATCH", "/connectors/a/offsets", {"offsets": [entry]})

    assert altered.json() == {
        "message": "The offsets for this connector have been altered successfully"
    }
    assert connect.get("/connectors/a/offsets") == {"offsets": [entry]}
    assert connect("DELETE", "/connectors/a/offsets").json() == {
        "message": "The offsets for this connector have been reset successfully"
    }
    assert connect.get("/connectors/a/offsets") == {"offsets": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", "", {"name": "a", "config": SOURCE}, 409, "Connector a already exists"),
        ("GET", "/nope", None, 404, "Connector nope not found"),
        ("GET", "/nope/config", None, 404, "Connector nope not found"),
        ("GET", "/nope/status", None, 404, "No status found for connector nope"),
        ("GET", "/nope/tasks", None, 404, "Connector nope not found"),
        ("GET", "/a/tasks/7/status", None, 404, "No status found for task a-7"),
        ("GET", "/nope/tasks/0/status", None, 404, "No status found for task nope-0"),
        ("GET", "/nope/offsets", None, 404, "Connector nope not found"),
        ("POST", "/nope/restart", None, 404, "Unknown connector: nope"),
        ("POST", "/a/tasks/9/restart", None, 404, "Unknown task: a-9"),
        ("POST", "/nope/tasks/0/restart", None, 404, "Unknown connector: nope"),
        ("PUT", "/nope/pause", None, 404, "Unknown connector nope"),
        ("PUT", "/nope/resume", None, 404, "Unknown connector nope"),
        ("PUT", "/nope/stop", None, 404, "Unknown connector nope"),
        ("DELETE", "/nope", None, 404, "Connector nope not found"),
        ("PATCH", "/nope/config", {}, 404, "Connector nope not found"),
        ("PATCH", "/nope/offsets", {"offsets": []}, 404, "Connector nope not found"),
        ("DELETE", "/nope/offsets", None, 404, "Connector nope not found"),
        ("PATCH", "/a/offsets", {}, 400, "Partitions / offsets need to be provided for an alter"),
        ("DELETE", "/a/offsets", None, 400, "Connectors must be in the STOPPED state before"),
        ("PUT", "/a/config", {}, 400, "Connector config {name=a} contains no connector type"),
        (
            "PUT",
            "/a/config",
            SOURCE | {"name": "z"},
            400,
            "Connector name configuration (z) doesn't match connector name in the URL (a)",
        ),
        (
            "PUT",
            "/a/config",
            SOURCE | {"tasks.max": "x"},
            400,
            (
                "Connector configuration is invalid and contains the following 2 error(s):\nInvalid"
                " value x for configuration tasks.max: Not a number of type INT\nInvalid value null"
                " for configuration tasks.max: Value must be non-null\nYou can also find the above"
                " list of errors at the endpoint"
                " `/connector-plugins/{connectorType}/config/validate`"
            ),
        ),
        ("PUT", "/a", None, 405, "HTTP 405 Method Not Allowed"),
        ("DELETE", "", None, 405, "HTTP 405 Method Not Allowed"),
        ("GET", "/a/bogus", None, 404, "HTTP 404 Not Found"),
        ("GET", "/a/tasks-config", None, 404, "HTTP 404 Not Found"),
    ],
)
def test_refusals_have_the_words_of_kafka_connect(
    connect: Api, method: str, path: str, body: Any, status: int, message: str
) -> None:
    create(connect)

    found = said(connect(method, f"/connectors{path}", body))

    assert found[0] == status
    assert found[1].startswith(message)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"xx", "the body is not JSON"),
        ([], "send a JSON object"),
        ({}, '"config" is missing'),
        ({"name": "a", "config": []}, "a config is a JSON object with texts, not a list"),
        ({"name": 5, "config": SOURCE}, '"name" is missing'),
        ({"name": "a", "config": SOURCE, "bogus": 1}, "Unrecognized field 'bogus'"),
        ({"name": "a", "config": SOURCE, "initial_state": "NOPE"}, "initial_state is 'NOPE'"),
        ({"name": "a", "config": {"x": {}}}, "x is a dict: values of a config are texts"),
        ({"name": "a", "config": {"x": None}}, "Null value can not be supplied"),
    ],
)
def test_a_body_that_is_no_connector_is_a_mistake_of_the_caller(
    connect: Api, body: Any, words: str
) -> None:
    status, message = said(connect("POST", "/connectors", body))

    assert status == 400
    assert words in message


class TestOfSomebodyWithFewRights:
    @pytest.fixture
    def rights(self) -> Rights:
        return Rights(
            [
                Grant(operation=Operation.VIEW, kind=Kind.CONNECTOR, pattern="mine-*"),
                Grant(operation=Operation.CREATE_CONNECTORS, kind=Kind.CONNECTOR, pattern="mine-*"),
                Grant(operation=Operation.PRODUCE, kind=Kind.TOPIC, pattern="t"),
            ]
        )

    def test_they_see_and_make_what_they_may(self, connect: Api) -> None:
        create(connect, "mine-1")
        models.Connector.objects.create(
            cluster=models.Connector.objects.get().cluster,
            name="theirs",
            plugin="samsa.test.lines",
            kind="source",
            config={},
            target="STARTED",
            state="RUNNING",
        )

        assert connect.get("/connectors") == ["mine-1"]
        assert list(connect.get("/connectors?expand=info")) == ["mine-1"]
        for method, path in (
            ("GET", "theirs"),
            ("GET", "theirs/status"),
            ("GET", "theirs/offsets"),
            ("DELETE", "mine-1"),
            ("PUT", "mine-1/pause"),
            ("POST", "mine-1/restart"),
            ("DELETE", "mine-1/offsets"),
        ):
            status, message = said(connect(method, f"/connectors/{path}"))
            assert status == 403
            assert message.startswith("You may not ")

    def test_their_connectors_open_no_file_without_a_right(self, connect: Api) -> None:
        reading = {"connector.class": "samsa.file.source", "file": "theirs/lines", "topic": "t"}

        for method, path, body in (
            ("POST", "", {"name": "mine-2", "config": reading}),
            ("PUT", "/mine-2/config", reading),
        ):
            status, message = said(connect(method, f"/connectors{path}", body))
            assert status == 403
            assert message.startswith("You may not read file theirs/lines")
        assert connect.get("/connectors") == []


class TestReadersOfSomeTopics:
    @pytest.fixture
    def rights(self) -> Rights:
        return Rights(
            [
                Grant(role=Role.VIEWER),
                Grant(operation=Operation.READ_PAYLOADS, kind=Kind.TOPIC, pattern="open"),
            ]
        )

    def test_they_see_what_repeats_a_record_of_these(self, connect: Api) -> None:
        row = models.Connector.objects.create(
            cluster=CLUSTER,
            name="a",
            plugin="samsa.test.lines",
            kind="source",
            config={},
            target="STARTED",
            state="RUNNING",
        )
        for number, topic in enumerate(("open", "secret")):
            trace = (
                f"DataError: {marked(f'Value (TOPSECRET-{number}) is not an int', [topic])}\nat x"
            )
            row.tasks.create(number=number, generation=1, state="FAILED", trace=trace)

        status = connect.get("/connectors/a/status")
        same = [connect.get(f"/connectors/a/tasks/{number}/status") for number in (0, 1)]

        first, second = (task["trace"] for task in status["tasks"])
        assert first == "DataError: Value (TOPSECRET-0) is not an int\nat x"
        assert second == (
            "DataError: [hidden: it may repeat records, and you may not read payloads on topic"
            " secret]\nat x"
        )
        assert same == status["tasks"]
        assert connect.get("/connectors?expand=status")["a"]["status"] == status
