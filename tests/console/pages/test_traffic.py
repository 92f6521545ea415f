"""The page of traffic: its four states, and who sees whom."""

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gateway.rest.traffic import STRANGERS
from tests.builders import tokens
from tests.builders.traffic import Workers

URL = reverse("console:traffic")


def text_of(client: Client, status: int = 200) -> str:
    answer = client.get(URL)
    assert answer.status_code == status
    return answer.content.decode()


def test_who_governs_sees_all_callers_the_busiest_first(alice: Client, workers: Workers) -> None:
    workers.counter.add("token:few", requests=9, records=1)
    workers.counter.add("user:many", requests=1, records=1_234_567, errors=3, bytes_in=2_048)

    page = text_of(alice)

    assert page.index(">many ") < page.index(">few ")
    assert "1,234,567" in page
    assert "of all tokens and users" in page


def test_others_see_themselves_and_their_own_tokens(olga: Client, workers: Workers) -> None:
    tokens.token("of-olga", owner=User.objects.get(username="olga"))
    tokens.token("of-host")
    for key in ("token:of-olga", "token:of-host", "user:olga", "session:alice", "*"):
        workers.counter.add(key, requests=1)

    page = text_of(olga)

    assert ">of-olga " in page
    assert ">olga " in page
    assert "of-host" not in page
    assert ">alice " not in page
    assert "all others" not in page


def test_calls_that_were_not_let_in_are_a_row_for_who_governs(
    alice: Client, olga: Client, workers: Workers
) -> None:
    workers.counter.add(STRANGERS, requests=7, errors=7)

    assert "not let in" in text_of(alice)
    assert "not let in" not in text_of(olga)


def test_where_nobody_called_the_page_says_so(
    alice: Client, olga: Client, workers: Workers
) -> None:
    assert "No token and no user has called" in text_of(alice)
    assert "Neither you nor a token of yours has called" in text_of(olga)


def test_a_worker_that_does_not_answer_is_named(alice: Client, workers: Workers) -> None:
    workers.counter.add("token:a", requests=1)
    workers.silent = ["gateway-2"]

    page = text_of(alice)

    assert "gateway-2 did not answer" in page
    assert ">a " in page


def test_where_nobody_can_be_asked_the_page_has_failed(alice: Client, workers: Workers) -> None:
    workers.failure = "this process is still starting"

    page = text_of(alice, status=503)

    assert "this process is still starting" in page
    assert "No calls" not in page


def test_a_name_is_no_markup_and_a_long_list_is_cut(alice: Client, workers: Workers) -> None:
    workers.counter.add("user:<script>alert(1)</script>", records=10**9)
    for number in range(150):
        workers.counter.add(f"token:t{number}", requests=1)

    page = text_of(alice)

    assert "<script>alert" not in page
    assert "51 more callers" in page


def test_who_is_not_signed_in_is_led_to_the_login(client: Client) -> None:
    assert client.get(URL)["Location"].startswith("/login")


def test_the_search_box_leads_there(olga: Client) -> None:
    found = olga.get(reverse("console:search"), {"q": "sockets"}).content.decode()

    assert f'href="{URL}' in found
