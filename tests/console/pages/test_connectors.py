"""Connect: the list of connectors, one of them, and the orders that a page gives."""

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from brokers.controlplane import audit
from connectors import models
from connectors.runtime.record_parts import marked
from gateway.access.operations import Kind, Operation, Role
from tests.builders import connectors as rows
from tests.builders import live, users
from tests.builders.live import Told
from tests.console import cluster_rows

CLUSTER = cluster_rows.CLUSTER_ID
URL = f"{reverse('console:connectors')}?cluster={CLUSTER}"
TRACE = "DataError: <b>17</b> is not a number\n  at line 3\n  at line 4"


@pytest.fixture(autouse=True)
def cluster() -> None:
    cluster_rows.cluster()


def page_of(name: str, tab: str = "tasks") -> str:
    return f"{reverse('console:connector', args=[name])}?cluster={CLUSTER}&tab={tab}"


def text_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def order(user: Client, name: str, verb: str) -> Any:
    address = reverse("console:order-connector", args=[name, verb])
    return user.post(address, {"cluster": CLUSTER})


def test_one_that_has_failed_as_a_whole_waits_for_no_tasks(alice: Client) -> None:
    rows.connector(CLUSTER, "shop", state="FAILED", trace="The user ann may not produce any more")

    page = text_of(alice.get(page_of("shop")))

    assert "A connector that has failed as a whole has no tasks." in page
    assert "which takes a second or two" not in page


def test_one_that_tries_again_says_why_and_runs_no_less(alice: Client) -> None:
    row = rows.connector(CLUSTER, "slow", kind="sink")
    task = rows.task(row, figures=rows.retrying(tries=1))
    rows.task(rows.connector(CLUSTER, "fine"))
    assert "cannot connect" not in text_of(alice.get(URL))

    task.figures = rows.retrying(tries=8)
    task.save()
    listed, page = text_of(alice.get(URL)), text_of(alice.get(page_of("slow")))

    assert ">Retrying</span>" in listed
    assert re.search(r"8 attempts failed in 5 min( \d s)?, the next [^:]+: cannot connect<", listed)
    assert '0 of 1<br><small class="warns">1 retrying</small>' in listed
    assert '<span class="count bad" title="Connectors that need attention">1</span>' in listed
    assert "<h2>cannot connect</h2>" in page
    assert re.search(r"Since <time .*</time> UTC: 8 attempts failed in 5 min", page)
    assert "Restart what has failed" not in page
    # It waits for its next try, which comes by itself.
    task.state = "UNASSIGNED"
    task.save()
    assert ">Retrying</span>" in text_of(alice.get(URL))


def test_connector_that_loses_records_is_never_green(alice: Client) -> None:
    config = {"errors.deadletterqueue.topic.name": "dlq", "name": "shop"}
    sink = rows.connector(CLUSTER, "shop", kind="sink", config=config)
    task = rows.task(sink, figures=rows.losing(advice="set the converter"))
    rows.task(rows.connector(CLUSTER, "feed"), figures=rows.losing(read=1000, lost=3, dead=0))

    listed, page = text_of(alice.get(URL)), text_of(alice.get(page_of("shop")))
    feed = text_of(alice.get(page_of("feed")))

    assert listed.count('<span class="st ok"') == feed.count('<span class="st ok" title') == 0
    assert '<span class="st bad" title="Most of the records' in listed
    assert '<span class="st warn" title="Some of the records' in listed
    assert listed.index(">shop<") < listed.index(">feed<")
    assert (
        "100 of the last 100 records were not written. Most common cause: values are no" in listed
    )
    assert "set the converter" in listed
    assert '<td class="num">100</td>' in listed
    assert "3 of the last 1,000 records were not written; 3 of 3 lost so far" in listed
    assert "<h2>100 of the last 100 records were not written</h2>" in page
    assert "values are no <b>JSON" in page
    assert "<b>JSON" not in alice.get(page_of("shop")).content.decode()
    assert "100 became dead letters" in page
    assert "3 of them are not kept anywhere" in feed

    task.restarts = 1
    task.save()
    assert "Losing records" not in text_of(alice.get(page_of("shop")))


def test_tasks_that_lose_nothing_count_among_what_was_read(alice: Client) -> None:
    sink = rows.connector(CLUSTER, "shop", kind="sink")
    rows.task(sink, 0, figures=rows.losing())
    fine = {"era": "1/0", "minutes": [[1, 200, 0], [2, 100, 0]]}
    rows.task(sink, 1, figures={"losses": fine})

    listed = text_of(alice.get(URL))

    assert "100 of the last 400 records were not written" in listed
    assert '<span class="st warn" title="Some of the records' in listed


def test_a_list_without_connectors_says_what_they_are_for(alice: Client) -> None:
    assert "No connectors yet" in text_of(alice.get(URL))


def test_those_in_need_come_first_with_the_first_line_of_their_trace(alice: Client) -> None:
    rows.task(rows.connector(CLUSTER, "a-fine"))
    partly = rows.connector(CLUSTER, "b-partly")
    rows.task(partly, 0)
    rows.task(partly, 1, state="FAILED", trace=TRACE, restarts=2)
    rows.connector(CLUSTER, "c-paused", state="PAUSED", target="PAUSED")
    rows.connector(CLUSTER, "d-failed", state="FAILED", trace="ConfigError: no such table")

    answer = alice.get(URL)

    names = re.findall(r'href="/connectors/([a-d]-[a-z]+)\?', answer.content.decode())
    assert names == ["d-failed", "b-partly", "a-fine", "c-paused"]
    page = text_of(answer)
    assert "ConfigError: no such table" in page
    assert "1 of 2" in page
    assert "at line 3" not in page
    assert b"<b>17</b>" not in answer.content


def test_a_long_cause_is_cut_between_two_words(alice: Client) -> None:
    rows.connector(CLUSTER, "a", state="FAILED", trace="the word " * 100)
    rows.connector(CLUSTER, "b", state="FAILED", trace="x" * 1000)

    page = text_of(alice.get(URL))

    assert "the word the…</small>" in page or "the word…</small>" in page
    assert f">{'x' * 299}…</small>" in page


def test_a_task_that_has_failed_has_no_rate(alice: Client) -> None:
    row = rows.connector(CLUSTER, "a")
    rows.task(row, 0, figures={"written_per_s": 12.5})
    rows.task(row, 1, figures={"written_per_s": 77.5}, state="FAILED", trace=TRACE)

    listed = text_of(alice.get(URL))
    assert '<td class="num">12.5</td>' in listed
    assert '<td class="num">90' not in listed
    assert "77.5" not in text_of(alice.get(page_of("a")))


def test_list_leads_to_the_form_of_each_plugin(alice: Client, client: Client) -> None:
    form = f"/connectors/+new/samsa.http.sink?cluster={CLUSTER}"

    assert form in text_of(alice.get(URL))
    client.force_login(users.user("vera", role=Role.VIEWER))
    assert form not in text_of(client.get(URL))


def test_a_sink_shows_how_far_its_group_is_behind(alice: Client, told: Told) -> None:
    rows.connector(CLUSTER, "to-files", kind="sink")
    told.put(live.group("connect-to-files", lag=417))

    assert "417" in text_of(alice.get(URL))
    assert "417 records" in text_of(alice.get(page_of("to-files")))


def test_that_no_worker_is_there_is_said(alice: Client) -> None:
    rows.connector(CLUSTER, "a")
    assert "No worker" in text_of(alice.get(URL))

    rows.worker(CLUSTER)
    assert "No worker" not in text_of(alice.get(URL))


def test_a_user_sees_the_connectors_that_a_grant_names() -> None:
    rows.connector(CLUSTER, "orders-in")
    rows.connector(CLUSTER, "salaries-in")
    carl, user = users.user("carl", role=None), Client()
    users.grant(carl, Operation.VIEW, kind=Kind.CONNECTOR, pattern="orders-*")
    user.force_login(carl)

    page = text_of(user.get(URL))

    assert "orders-in" in page
    assert "salaries-in" not in page
    assert user.get(page_of("orders-in")).status_code == 200
    assert user.get(page_of("salaries-in")).status_code == 404


def test_a_viewer_sees_no_record_in_an_error() -> None:
    row = rows.connector(CLUSTER, "a")
    value = marked("Value (TOPSECRET-0)", ["orders"])
    rows.task(row, state="FAILED", trace=f"ConnectorError: {value} was out of range")
    rows.line(row, f"{value} was out of range", level="ERROR")
    user = Client()
    user.force_login(users.user("carl", role=Role.VIEWER))

    pages = [user.get(address) for address in (URL, page_of("a"), page_of("a", "log"))]

    assert not [page for page in pages if b"TOPSECRET" in page.content]
    assert "you may not read payloads on topic orders] was out of range" in text_of(pages[1])


def test_each_part_of_a_connector_shows_what_is_there(alice: Client) -> None:
    row = rows.connector(CLUSTER, "a")
    rows.task(row, figures={"records_read": 12, "records_written": 11, "dead_letters": 1})
    rows.task(row, 1, state="FAILED", trace=TRACE)
    rows.line(row, "began at <i>0</i>", level="WARNING")
    rows.offset(row, {"table": "orders"}, {"id": 4711})

    assert TRACE in text_of(alice.get(page_of("a")))
    assert '"kafka.topic": "orders"' in text_of(alice.get(page_of("a", "config")))
    log = alice.get(page_of("a", "log"))
    assert "began at <i>0</i>" in text_of(log)
    assert b"<i>0</i>" not in log.content
    assert '{"id": 4711}' in text_of(alice.get(page_of("a", "offsets")))


def test_a_password_is_shown_as_a_mask(alice: Client) -> None:
    config = {"connection.password": {"sealed": "abcdefgh:c2VhbGVk"}, "topic": "t"}
    rows.connector(CLUSTER, "a", config=config)

    page = text_of(alice.get(page_of("a", "config")))

    assert "[hidden]" in page
    assert "c2VhbGVk" not in page


@pytest.mark.parametrize(
    ("verb", "before", "after"),
    [
        ("pause", "STARTED", "PAUSED"),
        ("stop", "STARTED", "STOPPED"),
        ("resume", "PAUSED", "STARTED"),
    ],
)
def test_an_order_is_written_down_and_told(
    verb: str, before: str, after: str, olga: Client
) -> None:
    rows.connector(CLUSTER, "a", target=before)

    answer = order(olga, "a", verb)

    assert (answer.status_code, models.Connector.objects.get().target) == (302, after)
    (entry,) = audit.entries(cluster_id=CLUSTER)
    assert (entry.name, entry.actor, dict(entry.after)) == ("a", "User:olga", {"target": after})


def test_a_restart_begins_a_new_generation_and_a_task_restarts_alone(olga: Client) -> None:
    row = rows.connector(CLUSTER, "a")
    rows.task(row, 0)
    rows.task(row, 1, state="FAILED", trace=TRACE)

    assert order(olga, "a", "restart").status_code == 302
    row.refresh_from_db()
    assert row.generation == 2

    row.tasks.filter(number=1).update(state="FAILED", trace=TRACE)
    again = reverse("console:restart-task", args=["a", 1])
    assert olga.post(again, {"cluster": CLUSTER}).status_code == 302
    assert row.tasks.get(number=1).trace == ""


def test_what_is_not_there_gets_no_order(olga: Client) -> None:
    rows.connector(CLUSTER, "a")

    assert order(olga, "none", "pause").status_code == 404
    assert order(olga, "a", "explode").status_code == 404
    missing = reverse("console:restart-task", args=["a", 7])
    assert olga.post(missing, {"cluster": CLUSTER}).status_code == 404


def test_a_viewer_sees_and_changes_nothing(victor: Client) -> None:
    rows.task(rows.connector(CLUSTER, "a"))

    page = text_of(victor.get(page_of("a")))

    assert "Pause" not in page
    assert "Delete" not in page
    assert order(victor, "a", "pause").status_code == 403
    assert victor.get(reverse("console:delete-connector", args=["a"])).status_code == 403
    assert models.Connector.objects.get().target == "STARTED"


def test_a_connector_is_deleted_once_its_name_is_typed(alice: Client) -> None:
    rows.task(rows.connector(CLUSTER, "a"))
    address = reverse("console:delete-connector", args=["a"])

    assert "starts from the beginning" in text_of(alice.get(f"{address}?cluster={CLUSTER}"))
    wrong = alice.post(address, {"cluster": CLUSTER, "typed": "b"})
    assert (wrong.status_code, models.Connector.objects.count()) == (400, 1)

    right = alice.post(address, {"cluster": CLUSTER, "typed": "a"})
    assert (right.status_code, models.Connector.objects.count()) == (302, 0)


def test_a_name_with_a_slash_has_a_page_that_its_link_leads_to(alice: Client) -> None:
    name = "team/a b%2F"
    rows.task(rows.connector(CLUSTER, name))

    (link,) = re.findall(r'href="(/connectors/team[^"]+)"', alice.get(URL).content.decode())

    assert name in text_of(alice.get(html.unescape(link)))
