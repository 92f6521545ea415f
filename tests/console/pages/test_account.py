"""One's own account: rights and sessions."""

from django.contrib.auth.models import User
from django.test import Client

from gateway.access.operations import Kind, Operation
from tests.builders import users
from tests.console import cluster_rows


def test_an_account_says_what_one_may_do_and_where_one_is_signed_in(victor: Client) -> None:
    page = victor.get("/account").content.decode()

    assert "viewer <small>role</small>" in page
    assert "Sees everything but records" in page
    assert "this one" in page


def test_somebody_without_rights_is_told_whom_to_ask(client: Client) -> None:
    client.force_login(users.user("carol", role=None))

    assert "You have no rights yet" in client.get("/account").content.decode()
    assert client.get("/").status_code == 403


def test_ones_other_sessions_end_by_one_button(alice: Client) -> None:
    other = Client()
    other.force_login(User.objects.get())

    answer = alice.post("/account/sessions/end", follow=True)

    assert "1 other session ended." in answer.content.decode()
    assert other.get("/account").status_code == 302
    assert alice.get("/account").status_code == 200


def test_who_may_see_some_topics_is_told_on_no_page_how_many_there_are(client: Client) -> None:
    shown = cluster_rows.cluster()
    for name in ("a", "b", "c"):
        cluster_rows.topic(shown, name, partitions=7)
    user = users.user("carol", role=None)
    users.grant(user, Operation.VIEW, kind=Kind.TOPIC, pattern="a*")
    client.force_login(user)

    pages = [client.get(path).content.decode() for path in ("/", "/topics", "/account")]

    assert [page for page in pages if 'class="count"' in page or "3 topics" in page] == []
    assert "1 that you may see" in pages[1]
