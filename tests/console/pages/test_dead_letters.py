"""Dead letters on their page: seen, chosen, planned, sent again, stopped and resumed."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from brokers.controlplane import audit
from connectors import dead_letters, models
from connectors.runtime.retry_topic import name_for
from connectors.sdk.records import TopicPartition
from console.queries import dead_letters as query
from gateway.access.operations import Role
from gateway.access.turns import TooBusy
from gateway.kafka.errors import failure
from tests.builders import connectors as rows
from tests.builders import users
from tests.console import cluster_rows
from tests.console.plan_pages import applied as start
from tests.fakes.dead_letters import DEAD, bury
from tests.fakes.slice_ports import FakeClock, FakeWire

CLUSTER = cluster_rows.CLUSTER_ID
NAME = "to/files"
CONFIG = {
    "connector.class": "samsa.file.sink",
    "topics": "in",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": DEAD,
    "errors.deadletterqueue.context.headers.enable": "true",
}


@pytest.fixture(autouse=True)
def wire(monkeypatch: pytest.MonkeyPatch) -> FakeWire:
    cluster_rows.cluster()
    rows.connector(CLUSTER, NAME, kind="sink", plugin="samsa.file.sink", config=CONFIG)
    made = FakeWire(FakeClock(), **{DEAD: 1, "in": 1})
    bury(made, b"<b>one</b>", connector_name=NAME, exception_message="<i>no</i> JSON")
    bury(made, b"two", connector_name=NAME, stage="TASK_PUT", exception_stacktrace="at line 3")
    bury(made, b"theirs", connector_name="other")

    @contextmanager
    def cluster_of(cluster: str, *, user: str = "") -> Iterator[FakeWire]:
        assert cluster == CLUSTER
        assert user in {"", "alice"}
        yield made

    monkeypatch.setattr(query, "cluster_of", cluster_of)
    return made


def address(view: str = "dead-letters", *more: int) -> str:
    return reverse(f"console:{view}", args=[NAME, *more])


def text_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def see(user: Client, **asked: str) -> Any:
    return user.get(address(), {"cluster": CLUSTER, **asked})


def plan(user: Client, **asked: Any) -> Any:
    return user.post(address("plan-redrive"), {"cluster": CLUSTER, "what": "all", **asked})


def test_letters_are_shown_with_their_cause_and_no_markup_of_theirs(alice: Client) -> None:
    page = see(alice)
    shown = text_of(page)

    assert page.status_code == 200
    assert b"&lt;b&gt;one&lt;/b&gt;" in page.content
    assert b"&lt;i&gt;no&lt;/i&gt; JSON" in page.content
    assert "DataException" in shown
    assert "at line 3" in shown
    assert "it belongs to another connector" in shown
    assert shown.count("disabled></td>") == 1
    assert "Dead letters</a>" in text_of(
        alice.get(f"{reverse('console:connector', args=[NAME])}?cluster={CLUSTER}")
    )


def test_a_filter_narrows_them_and_finding_none_says_so(alice: Client) -> None:
    some, none = text_of(see(alice, stage="TASK_PUT")), text_of(see(alice, exception="Nope"))

    assert "two" in some
    assert "one</b>" not in some
    assert "No letter matches among the newest 3" in none


def test_what_is_chosen_is_planned_shown_and_sent_as_it_was_shown(
    alice: Client, wire: FakeWire
) -> None:
    planned = plan(alice, what="chosen", letter=["0/1"])
    assert "Send 1 dead letter again" in text_of(planned)
    assert f"{name_for(NAME)}" in text_of(planned)
    assert "--letter 0/1" in text_of(planned)
    assert not models.Redrive.objects.exists()

    answer = start(alice, planned)

    run = models.Redrive.objects.get()
    assert (answer.status_code, run.chosen, run.state) == (302, 1, "RUNNING")
    assert [topic.name for topic in wire.created] == [name_for(NAME)]
    followed = text_of(alice.get(answer["Location"]))
    assert f"Started run {run.pk}. Letters to send again: 1." in followed
    assert "0 of 1" in followed
    assert "The newest run has sent 0 of 1" in text_of(see(alice))
    [entry] = [each for each in audit.entries(cluster_id=CLUSTER) if "letters" in each.kind]
    assert (entry.kind, entry.name) == ("send dead letters again", NAME)


def test_all_of_a_filter_or_of_a_range_are_planned(alice: Client) -> None:
    everything, stage = text_of(plan(alice)), text_of(plan(alice, stage="TASK_PUT"))
    ranged = text_of(plan(alice, **{"from": "0", "until": "1"}))

    assert "Send 2 dead letters again" in everything
    assert "1 letter</b><p>it belongs to another connector" in everything
    assert "Send 1 dead letter again" in stage
    assert "--offsets 0:0-1" in ranged


def test_one_error_of_many_letters_is_shown_once_and_they_are_sent_in_two_clicks(
    alice: Client, wire: FakeWire
) -> None:
    for number in range(60):
        bury(wire, b"x", connector_name=NAME, exception_message=f"value {number + 1000} is bad")

    page = see(alice)
    shown = text_of(page)
    [cause] = re.findall(r'name="of-cause" value="(\w+)">[^<]*<[^>]*> all of this cause', shown)[:1]
    planned = plan(alice, **{"of-cause": cause})
    start(alice, planned)

    causes = shown.partition("Letters</h2>")[0]
    assert causes.count("value … is bad") == 1
    assert "60</b>" in causes
    assert "Send 60 dead letters again" in text_of(planned)
    assert f"--cause {cause}" in text_of(planned)
    assert models.Redrive.objects.get().chosen == 60
    of_cause = text_of(see(alice, cause=cause))
    assert "Letters of this cause" in of_cause
    assert "two" not in of_cause.partition("Letters of this cause")[2]


def test_plan_for_a_stopped_connector_warns(alice: Client) -> None:
    models.Connector.objects.update(target=models.Target.STOPPED)

    assert "reads nothing until it is resumed" in text_of(plan(alice))


def test_to_the_origin_other_groups_are_named_and_the_name_is_typed(
    alice: Client, wire: FakeWire
) -> None:
    wire.groups["billing"] = {TopicPartition(topic="in", partition=0): 0}
    planned = plan(alice, destination="origin")
    assert "billing" in text_of(planned)
    assert "Who reads them again" in text_of(planned)

    refused = start(alice, planned, typed="another")
    assert refused.status_code == 400
    assert "The typed name is not the name of the connector" in text_of(refused)
    assert not models.Redrive.objects.exists()

    assert start(alice, planned, typed=NAME).status_code == 302
    assert models.Redrive.objects.get().destination == "origin"


def test_a_plan_that_has_moved_is_shown_with_the_reason(alice: Client, wire: FakeWire) -> None:
    planned = plan(alice)
    wire.make_anew(DEAD)

    answer = start(alice, planned)

    assert answer.status_code == 409
    assert "topic dead was deleted since the plan was made" in text_of(answer)
    assert not models.Redrive.objects.exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"what": "chosen"}, "No letter was ticked"),
        ({"what": "chosen", "letter": ["x"]}, "The form names an invalid letter"),
        ({"what": "chosen", "letter": [f"0/{n}" for n in range(501)]}, "501 letters are selected"),
        ({"from": "x"}, "“x” is not a number for from"),
        ({"partition": "9"}, "has no partition 9"),
    ],
)
def test_what_cannot_be_meant_is_said_above_the_letters(
    alice: Client, asked: dict[str, Any], said: str
) -> None:
    answer = plan(alice, **asked)

    assert answer.status_code in {400, 409}
    assert said in text_of(answer)


def test_a_run_is_stopped_and_resumed_from_its_page(alice: Client) -> None:
    start(alice, plan(alice))
    number = models.Redrive.objects.get().pk
    about = {"cluster": CLUSTER}

    stopped = alice.post(address("stop-redrive", number), about)
    page = text_of(alice.get(address("redrives"), about))
    resumed = alice.post(address("resume-redrive", number), about)
    unknown = alice.post(address("stop-redrive", number + 1), about)

    assert (stopped.status_code, resumed.status_code, unknown.status_code) == (302, 302, 404)
    assert "Stopped" in page
    assert "Resume run" in page
    assert models.Redrive.objects.get().state == "RUNNING"


def test_whoever_may_only_look_plans_and_sends_nothing(client: Client) -> None:
    viewer = users.user("vera", role=Role.VIEWER)
    client.force_login(viewer)

    page = see(client)

    assert page.status_code == 403
    assert "read payloads" in text_of(page)
    assert plan(client).status_code == 403
    assert client.post(address("stop-redrive", 1), {"cluster": CLUSTER}).status_code == 403


def test_a_seal_of_somebody_else_starts_nothing(alice: Client, olga: Client) -> None:
    planned = plan(alice)

    answer = start(olga, planned)

    assert answer.status_code == 400
    assert "This plan has expired" in text_of(answer)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (failure("BROKER_NOT_AVAILABLE", "127.0.0.1:1"), "127.0.0.1:1"),
        (TooBusy("9 dead letters are being read already"), "Too much is asked at once"),
    ],
)
def test_brokers_that_do_not_answer_leave_a_page_that_says_so(
    alice: Client, monkeypatch: pytest.MonkeyPatch, wrong: Exception, said: str
) -> None:
    def cluster_of(cluster: str) -> Any:
        del cluster
        raise wrong

    monkeypatch.setattr(query, "cluster_of", cluster_of)

    answers = [see(alice), plan(alice)]

    assert [answer.status_code for answer in answers] == [503, 503]
    assert all(said in text_of(answer) for answer in answers)


def test_letters_that_are_not_counted_in_time_are_shown(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def causes(*_asked: Any, **_wire: Any) -> Any:
        raise failure("REQUEST_TIMED_OUT", "127.0.0.1:1")

    monkeypatch.setattr(dead_letters, "causes", causes)

    answer = see(alice)

    assert answer.status_code == 200
    assert "The letters were not counted by cause" in text_of(answer)
    assert "Choose letter 0/0" in answer.content.decode()


def test_a_connector_without_dead_letters_says_what_to_set(alice: Client) -> None:
    rows.connector(CLUSTER, "source")

    answer = alice.get(reverse("console:dead-letters", args=["source"]), {"cluster": CLUSTER})

    assert answer.status_code == 409
    assert "errors.deadletterqueue.topic.name" in text_of(answer)
    nobody = alice.get(reverse("console:dead-letters", args=["nobody"]), {"cluster": CLUSTER})
    assert nobody.status_code == 404
