"""Plan, preview, apply, as a browser goes through them."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.test import Client, RequestFactory

from brokers.cluster import levels
from brokers.cluster.proposals import Action, CreatePartitions, CreateTopic, DeleteTopic
from brokers.controlplane import audit, models, services
from console import kept_forms
from console.pages.plans import plan_changes
from console.plans import metadata
from gateway.access.operations import Kind, Operation
from gateway.access.sessions import SessionStore
from tests.builders import users
from tests.console import cluster_rows
from tests.console.plan_pages import seal_in, sealed

SHOWN = cluster_rows.CLUSTER_ID


@pytest.fixture
def cluster() -> models.Cluster:
    made = cluster_rows.cluster()
    models.ProducerIds.objects.create(cluster=made)
    models.Cluster.objects.update(metadata_level=levels.KNOWN_LEVEL)
    made.refresh_from_db()
    cluster_rows.broker(made, 1)
    return made


def request_of(user: User) -> HttpRequest:
    request = RequestFactory().get("/")
    request.user = user
    request.session = SessionStore()
    return request


def page_of(user: User, *actions: Action) -> str:
    return plan_changes(request_of(user), SHOWN, actions).content.decode()


def sealed_for(holder: str, *actions: Action) -> str:
    plan = services.preview(cluster_id=SHOWN, actions=actions, now_ms=1)
    written = metadata.MetadataPlan(written=services.write_plan(plan))
    return sealed(metadata.KIND, written, holder)


def named(name: str) -> User:
    return User.objects.get(username=name)


@pytest.mark.usefixtures("cluster")
def test_a_plan_that_was_shown_is_applied_and_stands_among_the_changes(alice: Client) -> None:
    page = page_of(named("alice"), CreateTopic(name="orders", partitions=2))
    assert not models.Topic.objects.exists()

    answer = alice.post("/plans/apply", {"plan": seal_in(page)})

    assert answer["Location"] == f"/topics/orders?cluster={SHOWN}"
    assert "The plan was applied" in alice.get("/").content.decode()
    assert models.Topic.objects.get().name == "orders"
    (entry,) = audit.entries(cluster_id=SHOWN)
    assert (entry.actor, entry.via, entry.address) == ("User:alice", "browser", "127.0.0.1")
    assert len(entry.session) == 16
    assert entry.session not in str(alice.session.session_key)


def test_a_preview_tells_before_after_what_follows_and_the_commands(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(cluster, "orders", partitions=2)

    page = unescape(page_of(named("alice"), CreatePartitions(name="orders", count=4)))

    assert "Add 2 partitions to topic orders, which then has 4." in page
    assert "CreatePartitions(" not in page
    assert "About 50% of the keys" in page
    assert "./samsa topics alter orders --partitions 4" in page
    assert "kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --alter" in page
    assert "topic orders at version 1" in page
    assert "to confirm" not in page


def test_a_plan_is_refused_once_the_state_has_moved(cluster: models.Cluster, alice: Client) -> None:
    cluster_rows.topic(cluster, "orders", partitions=2)
    shown = seal_in(page_of(named("alice"), DeleteTopic(name="orders")))
    grown = services.preview(
        cluster_id=SHOWN, actions=[CreatePartitions(name="orders", count=4)], now_ms=1
    )
    services.propose(cluster_id=SHOWN, proposals=grown.proposals, now_ms=1)

    answer = alice.post("/plans/apply", {"plan": shown})

    page = answer.content.decode()
    assert answer.status_code == 409
    assert "The cluster has changed since you looked" in page
    assert "topic orders was at version 1 and is at version 8" in page
    assert models.Topic.objects.exists()
    assert audit.entries(cluster_id=SHOWN)[0].outcome == "INVALID_UPDATE_VERSION"


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("action", "place"),
    [
        (CreateTopic(name="carts", partitions=1), "/topics"),
        (DeleteTopic(name="payments"), "/topics/payments"),
    ],
    ids=["created", "deleted"],
)
def test_a_plan_can_be_left_for_what_is_there(alice: Client, action: Action, place: str) -> None:
    page = page_of(named("alice"), action)

    assert f'<a class="btn" href="{place}?cluster=' in page


@pytest.mark.usefixtures("cluster")
def test_a_refused_step_says_why_and_has_no_button(alice: Client) -> None:
    page = page_of(named("alice"), DeleteTopic(name="<b>"))

    assert "UNKNOWN_TOPIC_OR_PARTITION: there is no topic &#x27;&lt;b&gt;&#x27;" in page
    assert "Apply this plan" not in page


@pytest.mark.usefixtures("cluster")
def test_a_viewer_sees_the_plan_and_cannot_apply_it(victor: Client) -> None:
    page = page_of(named("victor"), CreateTopic(name="orders"))

    answer = victor.post("/plans/apply", {"plan": sealed_for("victor", CreateTopic(name="orders"))})

    assert "You may not create topics on topic orders" in page
    assert "Apply this plan" not in page
    assert answer.status_code == 403
    assert not models.Topic.objects.exists()


@pytest.mark.usefixtures("cluster")
def test_a_plan_of_somebody_else_is_none(alice: Client) -> None:
    for text in (sealed_for("olga", CreateTopic(name="orders")), "", "x" * 100):
        answer = alice.post("/plans/apply", {"plan": text})
        assert answer.status_code == 400
        assert "This plan has expired" in answer.content.decode()
    assert not models.Topic.objects.exists()


@pytest.mark.parametrize("action", [CreatePartitions(name="b", count=4), DeleteTopic(name="b")])
def test_rights_are_asked_for_each_topic_of_a_plan(cluster: models.Cluster, action: Action) -> None:
    for name in "ab":
        cluster_rows.topic(cluster, name)
    user = users.user("some", role=None)
    for operation in (Operation.VIEW, Operation.ALTER_TOPICS, Operation.DELETE_TOPICS):
        users.grant(user, operation, kind=Kind.TOPIC, pattern="a")
    actions = [CreatePartitions(name="a", count=4), action]
    browser = Client()
    browser.force_login(user)

    page = page_of(user, *actions)
    answer = browser.post("/plans/apply", {"plan": sealed_for("some", *actions)})

    assert "You may not view on topic b" in page
    assert answer.status_code == 403
    assert not audit.entries(cluster_id=SHOWN)


@pytest.mark.usefixtures("cluster")
def test_no_plan_is_made_while_an_older_host_keeps_no_versions(alice: Client) -> None:
    models.Cluster.objects.update(metadata_level=levels.FIRST_LEVEL)
    models.Broker.objects.update(metadata_level=levels.FIRST_LEVEL)

    page = page_of(named("alice"), CreateTopic(name="orders"))

    assert "a plan needs metadata level 2" in page
    assert "broker 1 at 127.0.0.1:9092 knows 1" in page


@pytest.mark.usefixtures("cluster")
def test_a_plan_that_is_sent_after_the_session_is_shown_again_and_not_applied(
    alice: Client,
) -> None:
    shown = seal_in(page_of(named("alice"), CreateTopic(name="orders", partitions=2)))
    typed_by = str(kept_forms.context(request_of(named("alice")))["typed_by"])
    by = re.search('value="([^"]+)"', typed_by)
    assert by is not None
    alice.logout()

    sheet = alice.post("/plans/apply", {"plan": shown, "typed_by": by[1]}).content.decode()
    kept = re.search('name="kept" value="([^"]+)"', sheet)
    assert kept is not None
    credentials = {"username": "alice", "password": users.PASSWORD}
    page = alice.post("/login", {**credentials, "kept": kept[1]}, follow=True).content.decode()

    assert "Not done yet" in page
    assert seal_in(page)
    assert not models.Topic.objects.exists()


def test_a_plan_is_applied_by_post_and_by_those_who_are_signed_in(
    client: Client, olga: Client
) -> None:
    assert olga.get("/plans/apply")["Location"] == "/"
    assert client.post("/plans/apply")["Location"] == "/login?next=/plans/apply"
