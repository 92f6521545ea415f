"""Forms about groups: what is asked, who may, and what they say where no plan can be made."""

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from brokers.controlplane import audit, models
from brokers.controlplane.services import GroupChangeKind
from console.group_changes import applying, desk
from console.group_changes.applying import Result
from console.group_changes.plans import GroupPlan, LeftOut
from console.plans import groups
from console.preferences import TIMES_COOKIE, ZONE_COOKIE
from gateway.access import seals
from gateway.access.operations import Kind, Operation
from gateway.access.turns import Turns
from gateway.kafka.errors import failure
from gateway.kafka.values import Place
from tests.builders import live, users
from tests.builders.group_plans import group_plan
from tests.console import cluster_rows
from tests.console.group_stage import cluster_at
from tests.console.plan_pages import sealed

SHOWN = cluster_rows.CLUSTER_ID
ORDERS = Place(topic="orders", partition=0)
AT = f"cluster={SHOWN}&name=billing"
FORMS = [f"/group/reset?{AT}", f"/group/offsets/delete?{AT}"]
PREVIEWS = [f"/group/offsets/delete?{AT}&topic=orders", f"/group/delete?{AT}"]
# A page answers within so long, whatever brokers do.
DEADLINE_S = 5.0


@pytest.fixture
def cluster() -> models.Cluster:
    """A cluster whose broker is not there: nobody listens on a port that needs the right to."""
    return cluster_at("127.0.0.1:1")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a program that takes connections and never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def posted(browser: Client, asked: GroupPlan, holder: str = "alice", **fields: str) -> Any:
    return browser.post("/plans/show", {"plan": sealed(groups.KIND, asked, holder), **fields})


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("address", FORMS)
def test_forms_ask_no_broker(alice: Client, address: str) -> None:
    answer = alice.get(address)

    assert answer.status_code == 200
    assert "billing" in answer.content.decode()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("address", FORMS)
def test_a_viewer_is_told_which_right_is_missing(victor: Client, address: str) -> None:
    page = victor.get(address).content.decode()

    assert "View only" in page
    assert "You may not reset groups on group billing" in page


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("kind", GroupChangeKind)
def test_a_viewer_sees_a_plan_and_cannot_apply_it(victor: Client, kind: GroupChangeKind) -> None:
    asked = group_plan(kind=kind)

    page = posted(victor, asked, "victor").content.decode()
    answer = victor.post("/plans/apply", {"plan": sealed(groups.KIND, asked, "victor")})

    assert "View only" in page
    assert "Apply this plan" not in page
    assert answer.status_code == 403
    assert not audit.entries(cluster_id=SHOWN)


@pytest.mark.usefixtures("cluster")
def test_rights_are_asked_for_the_group_and_for_each_topic() -> None:
    user = users.user("some", role=None)
    users.grant(user, Operation.VIEW, kind=Kind.GROUP, pattern="billing")
    users.grant(user, Operation.RESET_GROUPS, kind=Kind.GROUP, pattern="billing")
    users.grant(user, Operation.VIEW, kind=Kind.TOPIC, pattern="orders")
    browser = Client()
    browser.force_login(user)

    hidden_group = browser.get(f"/group/reset?cluster={SHOWN}&name=payroll")
    hidden_topic = browser.get(f"/group/offsets/delete?{AT}&topic=wages")
    other_topic = browser.post(
        "/plans/apply", {"plan": sealed(groups.KIND, group_plan(topic="wages"), "some")}
    )

    assert hidden_group.status_code == hidden_topic.status_code == other_topic.status_code == 403
    assert "You may not view on group payroll" in hidden_group.content.decode()
    assert "You may not view on topic wages" in hidden_topic.content.decode()
    assert "You may not view on topic wages" in other_topic.content.decode()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("address", ["/plans/apply", "/plans/show"])
def test_a_plan_of_somebody_else_or_of_an_hour_ago_is_none(
    alice: Client, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    for text in (sealed(groups.KIND, group_plan(), "olga"), "", "x" * 100):
        assert alice.post(address, {"plan": text}).status_code == 400
    assert alice.post("/plans/show", {"plan": sealed(groups.KIND, group_plan())}).status_code == 200
    monkeypatch.setattr(seals, "MAX_AGE_S", -1)

    answer = alice.post(address, {"plan": sealed(groups.KIND, group_plan())})

    assert answer.status_code == 400
    assert "preview the change again" in answer.content.decode()


@pytest.mark.usefixtures("cluster")
def test_a_change_needs_the_token_of_its_form() -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(users.user("alice"))

    fields = {"plan": sealed(groups.KIND, group_plan()), "mode": "latest"}

    for address in ("/plans/apply", "/plans/show", f"/group/reset?{AT}"):
        assert strict.post(address, fields).status_code == 403


@pytest.mark.usefixtures("cluster")
def test_a_plan_is_shown_500_partitions_at_a_time_with_the_totals_of_all(alice: Client) -> None:
    asked = group_plan(1_201)

    first = posted(alice, asked).content.decode()
    last = posted(alice, asked, page="3").content.decode()

    assert first.count('<tr><th scope="row"') == 500
    assert "1 to 500 of 1,201" in first
    assert "<dd>1,201 of 1,201, 1 topic</dd>" in first
    assert f"<dd>{1201 * 23:,}</dd>" in first
    assert last.count('<tr><th scope="row"') == 201
    assert "1,001 to 1,201 of 1,201" in last
    assert posted(alice, asked, page="99").content.decode().count('<tr><th scope="row"') == 201


@pytest.mark.usefixtures("cluster")
def test_commands_are_shown_with_names_quoted(alice: Client) -> None:
    page = unescape(posted(alice, group_plan(group="-my group")).content.decode())

    assert "./samsa groups reset --all-topics --to-earliest --execute -- '-my group'" in page
    assert (
        "kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:1 --group='-my group'"
        " --reset-offsets --all-topics --to-earliest --execute" in page
    )


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "a/b?c=d&e", "\u202eevil", "é" * 300]
)
def test_names_of_any_text_are_shown_and_never_become_markup(alice: Client, name: str) -> None:
    left_out = LeftOut(what=name, reason=name)

    pages = [
        alice.get("/group/reset", {"name": name, "cluster": SHOWN}),
        alice.get("/group/offsets/delete", {"name": name, "cluster": SHOWN}),
        posted(alice, group_plan(group=name, left_out=(left_out,), refusal=name)),
    ]

    for answer in pages:
        assert answer.status_code == 200
        assert "<script>alert" not in answer.content.decode()
        assert "\u202e" not in answer.content.decode().partition("<h1>")[2].partition("</h1>")[0]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_what_was_asked_for_in_vain_never_becomes_markup(alice: Client) -> None:
    asked = {"name": "billing", "topic": "<script>alert(1)</script>", "cluster": SHOWN}

    answer = alice.get("/group/offsets/delete", asked)

    assert answer.status_code == 503
    assert "<script>alert" not in answer.content.decode()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", ["", "a\0b", "x" * 1_001])
def test_a_name_that_no_group_has_is_refused(alice: Client, name: str) -> None:
    for page in ("reset", "offsets/delete", "delete"):
        answer = alice.get(f"/group/{page}", {"name": name, "cluster": SHOWN})
        assert answer.status_code == 400
        assert "No group is named" in answer.content.decode()


@pytest.mark.usefixtures("cluster")
def test_another_cluster_than_the_one_that_was_named_is_never_taken(alice: Client) -> None:
    assert alice.get("/group/reset?cluster=other&name=billing").status_code == 404


@pytest.mark.usefixtures("cluster")
def test_offsets_of_a_group_are_taken_over_by_those_only_who_may_view_it() -> None:
    user = users.user("some", role=None)
    users.grant(user, Operation.VIEW, kind=Kind.GROUP, pattern="billing")
    users.grant(user, Operation.VIEW, kind=Kind.TOPIC)
    browser = Client()
    browser.force_login(user)
    given = {"mode": "group", "source": "payroll", "scope": "all", "zone": "UTC"}

    answer = browser.post(f"/group/reset?{AT}", given)

    assert answer.status_code == 403
    assert "You may not view on group payroll" in answer.content.decode()
    assert 'value="payroll"' in answer.content.decode()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "fields",
    [
        {"mode": "ago", "ago": "1000000", "unit": "days"},
        {"mode": "time", "time": "0001-01-01T00:00+05:00"},
        {"mode": "time", "time": "9999-12-31T23:59-05:00"},
    ],
)
def test_a_time_beyond_all_dates_is_no_crash(
    alice: Client, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    monkeypatch.setattr(desk, "TURNS", Turns(places=0, queue=0, wait_s=0.0, what="x"))

    answer = alice.post(f"/group/reset?{AT}", {"scope": "all", "zone": "UTC", **fields})

    # Understood, and then nobody is asked; or refused in words.
    assert answer.status_code == (503 if fields["mode"] == "ago" else 400)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"mode": "offset"}, "Give the offset: a number from 0 on."),
        ({"mode": "offset", "offset": "-1"}, "greater than or equal to 0"),
        ({"mode": "offset", "offset": "9223372036854775808"}, "less than or equal to"),
        ({"mode": "shift"}, "Give the number of offsets"),
        ({"mode": "ago"}, "Say how long ago"),
        ({"mode": "time"}, "Give the time"),
        ({"mode": "time", "time": "noon"}, "'noon' is not a time: give how long ago, as -15m"),
        ({"mode": "time", "time": "2026-01-31T12:00", "zone": "Europe/Berlin"}, "was typed in"),
        ({"mode": "group"}, "Name the group whose offsets are to be taken over."),
        ({"mode": "file"}, "Choose the file."),
        ({"mode": "nonsense"}, "Select a valid choice"),
        ({"mode": "latest", "scope": "some"}, "Choose topics or name some, or take all."),
        ({"mode": "latest", "scope": "some", "topics": "a:x"}, "is not a topic"),
    ],
)
def test_what_makes_no_sense_says_what_to_give(
    alice: Client, fields: dict[str, str], says: str
) -> None:
    given = {"scope": "all", "zone": "UTC", **fields}

    answer = alice.post(f"/group/reset?{AT}", given)

    assert answer.status_code == 400
    assert says in unescape(answer.content.decode())


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("zone", "typed", "first", "second"),
    [
        ("Europe/Berlin", "2026-10-25T02:30", "00:30:00", "01:30:00"),
        ("America/New_York", "2026-11-01T01:30", "05:30:00", "06:30:00"),
    ],
)
def test_an_hour_that_happens_twice_asks_which_one_is_meant(
    alice: Client, zone: str, typed: str, first: str, second: str
) -> None:
    alice.cookies[TIMES_COOKIE], alice.cookies[ZONE_COOKIE] = "local", zone
    given = {"mode": "time", "scope": "all", "zone": zone, "time": typed}

    answer = alice.post(f"/group/reset?{AT}", given)

    page = unescape(answer.content.decode())
    assert answer.status_code == 400
    assert "twice that night. Choose which one is meant." in page
    day = typed.partition("T")[0]
    for at in (first, second):
        assert f"{day} {at} UTC" in page
        assert f'name="moment" id="moment_{1 if at == first else 2}"' in page
        assert f'value="{day}T{at}+00:00"' in page


@pytest.mark.usefixtures("cluster")
def test_an_hour_that_does_not_happen_is_refused(alice: Client) -> None:
    alice.cookies[TIMES_COOKIE], alice.cookies[ZONE_COOKIE] = "local", "Europe/Berlin"
    given = {"mode": "time", "scope": "all", "zone": "Europe/Berlin", "time": "2026-03-29T02:30"}

    page = alice.post(f"/group/reset?{AT}", given).content.decode()

    assert "There is no 2026-03-29 02:30 in Europe/Berlin" in page


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_brokers_that_are_down_are_a_failure_and_what_was_typed_stays(alice: Client) -> None:
    started = time.monotonic()
    given = {"mode": "offset", "offset": "17", "scope": "some", "topics": "orders"}

    answer = alice.post(f"/group/reset?{AT}", given)

    page = answer.content.decode()
    assert answer.status_code == 503
    assert "Failed" in page
    assert "no broker answers there" in page
    assert 'value="17"' in page
    assert ">orders</textarea>" in page
    assert time.monotonic() - started < DEADLINE_S


@pytest.mark.slow
@pytest.mark.parametrize(("address", "read_s"), [(PREVIEWS[0], 0.3), (PREVIEWS[1], desk.READ_S)])
def test_a_broker_that_never_answers_ends_the_wait_at_the_deadline(
    alice: Client, silent: str, monkeypatch: pytest.MonkeyPatch, address: str, read_s: float
) -> None:
    monkeypatch.setattr(desk, "READ_S", read_s)
    cluster_at(silent)
    started = time.monotonic()

    answer = alice.get(address)

    assert answer.status_code == 503
    assert "no answer came in time" in answer.content.decode()
    assert time.monotonic() - started < DEADLINE_S


@pytest.mark.slow
def test_a_plan_that_cannot_be_checked_is_not_applied(
    alice: Client, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "READ_S", 0.3)
    cluster_at(silent)

    answer = alice.post("/plans/apply", {"plan": sealed(groups.KIND, group_plan())})

    assert answer.status_code == 503
    assert "Nothing was done." in answer.content.decode()
    assert not audit.entries(cluster_id=SHOWN)


@pytest.mark.usefixtures("cluster")
def test_a_console_that_asks_too_much_at_once_says_so(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(places=1, queue=0, wait_s=0.01, what="changes of groups are being looked at")
    monkeypatch.setattr(desk, "TURNS", turns)

    with turns.turn():
        answer = alice.get(f"/group/delete?{AT}")

    assert answer.status_code == 503
    assert "1 changes of groups are being looked at already" in answer.content.decode()


def test_no_broker_that_ever_registered_is_told(alice: Client) -> None:
    cluster_rows.cluster()

    answer = alice.get(f"/group/delete?{AT}")

    assert answer.status_code == 503
    assert "no broker has ever registered" in answer.content.decode()


@pytest.mark.usefixtures("cluster")
def test_topics_are_offered_as_the_collector_tells_them(alice: Client, told: live.Told) -> None:
    told.put(
        live.group("billing", members=2),
        live.pair("billing", "orders", partitions=6, lag=40),
        live.pair("billing", "<b>"),
        live.pair("other", "hidden"),
    )

    page = alice.get(f"/group/reset?{AT}").content.decode()
    ticked = alice.post(
        f"/group/reset?{AT}",
        {"mode": "offset", "scope": "some", "topic": ["orders"], "topics": "more:0"},
    ).content.decode()

    assert 'value="orders"' in page
    assert "6 partitions, 40 behind" in page
    assert 'value="&lt;b&gt;"' in page
    assert "hidden" not in page.partition("<form")[2].partition("Of which topics")[2]
    assert "The group has 2 members at the moment" in page
    assert 'value="orders" checked' in ticked
    assert ">more:0</textarea>" in ticked


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("result", "status", "says"),
    [
        (Result(moved=("it moved",)), 409, "The group has changed since you looked"),
        (
            Result(failure=failure("REQUEST_TIMED_OUT", "group billing"), entry=1),
            503,
            "The result of the plan is unknown",
        ),
        (
            Result(failure=failure("NON_EMPTY_GROUP", "group billing"), entry=1),
            409,
            "Nothing was changed. Stop its consumers",
        ),
        (
            Result(refused={ORDERS: failure("UNKNOWN_MEMBER_ID", str(ORDERS))}, entry=1),
            409,
            "1 of 2 partitions were refused; 1 was changed",
        ),
        (
            Result(refused={ORDERS: failure("REQUEST_TIMED_OUT", str(ORDERS))}, entry=1),
            409,
            "were refused, or got no answer, so their result is unknown",
        ),
        (Result(entry=1, is_noted=False), 200, "The database did not take the outcome"),
    ],
)
def test_each_outcome_of_a_plan_has_its_words(
    alice: Client, monkeypatch: pytest.MonkeyPatch, result: Result, status: int, says: str
) -> None:
    monkeypatch.setattr(applying, "apply", lambda *_plan, **_origin: result)

    answer = alice.post("/plans/apply", {"plan": sealed(groups.KIND, group_plan(2))})

    page = answer.content.decode()
    assert answer.status_code == status
    assert says in page
    assert "Preview again" in page


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ({"mode": "offset", "offset": '"><b>'}, 'value="&quot;&gt;&lt;b&gt;"'),
        ({"mode": "nonsense"}, 'value="earliest" checked'),
        ({"mode": "time", "time": "2026-01-31T12:00", "zone": "UTC"}, "2026-01-31 12:00:00"),
        (
            {"mode": "time", "time": "2026-01-31T12:00", "zone": "Asia/Tokyo"},
            'name="time" value="2026-01-31 03:00:00"',
        ),
    ],
)
def test_a_link_fills_a_form_in_with_what_still_means_the_same(
    alice: Client, before: dict[str, str], shown: str
) -> None:
    page = alice.get("/group/reset", {"name": "billing", "cluster": SHOWN, **before})

    assert shown in page.content.decode()


@pytest.mark.usefixtures("cluster")
def test_a_database_that_is_away_is_told_by_its_name(alice: Client) -> None:
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE controlplane_cluster RENAME TO elsewhere")
    alice.raise_request_exception = False

    for page in ("reset", "offsets/delete", "delete"):
        answer = alice.get(f"/group/{page}?{AT}")
        assert answer.status_code == 503
        assert "The database does not answer" in answer.content.decode()


def test_commands_too_long_to_paste_are_left_out() -> None:
    targets = ("--topic", "t" * groups.MAX_COMMAND_CHARS)

    assert groups.commands_of(group_plan(targets=targets), bootstrap="broker.test:9092") == ()
    assert len(groups.commands_of(group_plan(), bootstrap="broker.test:9092")) == 2
