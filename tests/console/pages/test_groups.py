"""The groups, and one of them, as a browser gets them."""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import AsyncClient, Client

from console.monitoring.tables import GroupRow, PairRow
from console.queries.groups import PAGE_ROWS
from gateway.access.operations import Kind, Operation
from tests.builders import connectors, users
from tests.builders import live as rows
from tests.builders.live import Told
from tests.console import cluster_rows

CLUSTER = cluster_rows.CLUSTER_ID
# What a group may be called by any Kafka client.
HOSTILE = (
    "",
    ".",
    "..",
    "a/../../login",
    "/",
    "//evil.example",
    "a b+c%2F%00",
    "?x=1&cluster=y#z",
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(1) '",
    "{{ data }}{% url 'x' %}",
    "new\nline\ttab\x00nul",
    "\u202egnp.exe",
    "名前🦆",
    "x" * 4_000,
)


def shown_list(browser: Client, **query: str) -> str:
    return browser.get("/groups", query).content.decode()


def names_in(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)</a></th>', page)


def detail(
    *,
    partitions: Sequence[Sequence[Any]] = (),
    members: Sequence[Sequence[Any]] = (),
    unowned: Sequence[Sequence[Any]] = (),
    topics: Sequence[Sequence[Any]] = (),
    count: int | None = None,
    row: GroupRow | None = None,
    pairs: Sequence[PairRow] = (),
) -> dict[str, Any]:
    return {
        "coordinator": 1,
        "topics": topics,
        "partitions": partitions,
        "partition_count": len(partitions) if count is None else count,
        "members": members,
        "unowned": unowned,
        "unowned_count": len(unowned),
        "is_cut": False,
        "row": None if row is None else astuple(row),
        "pairs": [astuple(pair) for pair in pairs],
        "is_published": True,
    }


def partition(topic: str, index: int, *, lag: int = 0, owner: str | None = None) -> list[Any]:
    commit_ms = int(time.time() * 1000) - 3_000
    verdict = "stopped" if lag else "ok"
    rule = "no commits" if lag else "caught up"
    return [topic, index, 100, 100 + lag, lag, commit_ms, verdict, owner, 12.5, rule, 100 + lag]


# --- the list --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/groups", "/group"])
def test_nobody_sees_groups_without_signing_in(client: Client, path: str) -> None:
    assert client.get(path)["Location"] == f"/login?next={path}"


def test_groups_stand_worst_first_by_verdict_and_then_by_age(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    now_ms = int(time.time() * 1000)
    told.put(
        rows.group("fine"),
        rows.group("young", verdict="stopped", lag=900, oldest_ms=now_ms - 10_000),
        rows.group("old", verdict="stopped", lag=5, oldest_ms=now_ms - 250_500),
        rows.group("slow", verdict="falling behind", lag=10_000, oldest_ms=now_ms - 900_000),
        rows.group("lossy", verdict="data loss ahead", lag=1, oldest_ms=now_ms),
    )

    page = shown_list(alice)

    assert names_in(page) == ["lossy", "old", "young", "slow", "fine"]
    assert re.search(r"4 min [1-5]\d s", page)
    for text in ("Data loss ahead", "1–5 of 5", "seen "):
        assert text in page


def test_a_row_tells_when_a_group_has_caught_up(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(
        rows.group("soon", lag=9, eta_low_s=240.0, eta_high_s=539.0),
        rows.group("maybe", lag=9, eta_low_s=240.0, eta_high_s=None),
        rows.group("late", verdict="falling behind", lag=9, eta_low_s=60.0, eta_high_s=90.0),
        rows.group("open", lag=9, eta_low_s=None, eta_high_s=None),
    )

    page = shown_list(alice)

    for text in ("4–9 min", "4 min at best", "<td>not known</td>"):
        assert text in page
    # Only a group that is known to fall behind never catches up.
    assert page.count("does not catch up") == 1


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"q": "ILL"}, ["billing"]),
        ({"verdict": "falling behind"}, ["mail"]),
        ({"state": "Empty"}, ["billing"]),
        ({"type": "classic"}, ["mail"]),
        ({"type": "classic", "state": "Empty"}, []),
        ({"sort": "name"}, ["audit", "billing", "mail"]),
        ({"sort": "name", "down": "1"}, ["mail", "billing", "audit"]),
        ({"sort": "lag"}, ["mail", "audit", "billing"]),
        ({"sort": "members"}, ["audit", "mail", "billing"]),
        ({"sort": "nothing", "verdict": "nothing", "page": "-1"}, ["mail", "audit", "billing"]),
        ({"page": "999999"}, ["mail", "audit", "billing"]),
    ],
)
def test_a_list_is_narrowed_and_sorted_as_it_is_asked(
    alice: Client, told: Told, query: dict[str, str], names: list[str]
) -> None:
    cluster_rows.cluster()
    told.put(
        rows.group("mail", verdict="falling behind", lag=9, type="classic", members=2),
        rows.group("billing", state="Empty", members=0),
        rows.group("audit", members=7),
    )

    assert names_in(shown_list(alice, **query)) == names


def test_facets_count_what_they_would_leave(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(
        rows.group("a", verdict="falling behind", lag=1),
        rows.group("b", state="Empty"),
        rows.group("c"),
    )

    page = shown_list(alice, verdict="falling behind")

    assert re.search(r'aria-current="true"[^>]*>Falling behind <b>1</b>', page)
    assert re.search(r">OK <b>2</b>", page)
    # Of those that fall behind, none is empty.
    assert re.search(r">Stable <b>1</b>", page)
    assert not re.search(r">Empty <b>", page)


def test_a_hundred_rows_make_a_page_and_links_keep_what_was_asked(
    alice: Client, told: Told
) -> None:
    cluster_rows.cluster()
    told.put(*(rows.group(f"group-{number:03}") for number in range(PAGE_ROWS + 1)))

    first = shown_list(alice, q="group", sort="name")

    link = f"?q=group&amp;sort=name&amp;page=2&amp;cluster={CLUSTER}"
    assert f'rel="next" href="{link}"' in first
    last = alice.get("/groups" + link.replace("&amp;", "&")).content.decode()
    assert names_in(last) == ["group-100"]
    assert "101–101 of 101" in last


def test_a_user_sees_the_groups_that_rights_name(client: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(rows.group("team-a.mail"), rows.group("team-b.mail"))
    user = users.user("tim", role=None)
    users.grant(user, Operation.VIEW, kind=Kind.GROUP, pattern="team-a.*")
    client.force_login(user)

    page = shown_list(client)

    assert names_in(page) == ["team-a.mail"]
    assert "team-b" not in page
    assert "1 group that you may see" in page
    answer = client.get("/group", {"name": "team-b.mail"})
    assert (answer.status_code, "may see" in answer.content.decode()) == (404, True)


def test_a_cluster_without_groups_says_how_one_comes(alice: Client) -> None:
    cluster_rows.cluster()

    assert "No groups yet" in shown_list(alice)


def test_a_filter_that_finds_nothing_leads_back(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(rows.group("mail"))

    page = shown_list(alice, q="<b>")

    assert "No group fits “&lt;b&gt;”" in page
    assert "Show all 1" in page


def test_a_collector_that_died_leaves_the_list_with_its_age(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(rows.group("mail", lag=3))
    told.go_silent(age_s=42.0)

    page = shown_list(alice)

    assert names_in(page) == ["mail"]
    assert "42 s ago</time>; the collector has sent none since" in page


def test_a_collector_that_never_told_is_no_empty_list(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.begin_silent()

    page = shown_list(alice)

    assert "Groups cannot be listed" in page
    assert "No groups yet" not in page


def test_rows_carry_pictures_of_the_last_minutes(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(rows.group("mail", lag=3), rows.group("flat"), rows.group("x" * 13_000))
    told.answers["/recent"] = {"samples": {"mail": [None, 1.0, 3.0], "flat": [0.0, 0.0]}}

    page = shown_list(alice)

    assert page.count('<svg class="spark"') == 1
    # A name that fits into no question is left out.
    ((_path, query),) = [asked for asked in told.asked if asked[0] == "/recent"]
    assert query == {"kind": "group", "names": '["mail", "flat"]'}


# --- one group -------------------------------------------------------------------------------


def test_a_group_says_what_is_wrong_with_it_and_since_when(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    now_ms = int(time.time() * 1000)
    told.put(
        rows.group(
            "billing",
            verdict="stopped",
            rule="no commits",
            since_ms=now_ms - 240_000,
            lag=1_200,
            oldest_ms=now_ms - 250_500,
            eta_low_s=None,
            eta_high_s=None,
        ),
        rows.pair("billing", "orders", verdict="stopped", lag=1_200, eta_low_s=None),
        rows.pair("billing", "audit"),
    )
    told.answers["/group"] = detail(
        topics=[
            ["audit", 1, 0.0, 0.0, -1, 0, "caught up"],
            ["orders", 4, 0.0, 1480.25, 3, now_ms - 250_000, "no commits"],
        ],
        partitions=[
            partition("orders", 3, lag=1_200, owner="m-1"),
            partition("orders", 0, owner="m-1"),
        ],
        members=[["m-1", "static-1", "app", "/10.0.0.1", [["orders", [0, 3]]], 1_200]],
        unowned=[["orders", 1], ["orders", 2]],
    )

    page = alice.get("/group", {"name": "billing"}).content.decode()

    # A busy machine takes seconds for a page.
    assert re.search(r"4 min [1-5]\d s behind: 1,200 records wait</h2>", page)
    for text in (
        "no commit has come for 2 min",
        "Worst is <b>orders-3</b>: no commit since <time",
        "it reads 0 records/s while 1,480.3 arrive",
        "Broker 1",
        "2 partitions of its topics have no member: <b>orders</b> 1–2",
        "static, static-1",
        "10.0.0.1",
        "Offsets cannot be changed while its member is active: stop it first.",
        'data-metric="lag_ms"',
    ):
        assert text in page


def actions_of(browser: Client) -> list[str]:
    page = browser.get("/group", {"name": "a b", "cluster": CLUSTER}).content.decode()
    return re.findall(r'href="(/group/[^"]*)"', page)


def test_buttons_lead_to_what_the_user_may_do_and_nobody_hinders(
    alice: Client, victor: Client, told: Told
) -> None:
    cluster_rows.cluster()
    told.put(rows.group("a b", members=0), rows.pair("a b", "orders"))
    told.answers["/group"] = detail()
    asked = f"?name=a+b&amp;cluster={CLUSTER}"

    assert actions_of(alice) == [
        f"/group/reset{asked}",
        f"/group/delete{asked}",
        f"/group/offsets/delete?name=a+b&amp;topic=orders&amp;cluster={CLUSTER}",
    ]
    assert actions_of(victor) == []
    told.put(rows.group("a b", members=2))
    assert actions_of(alice) == []
    page = alice.get("/group", {"name": "a b"}).content.decode()
    assert page.count('<button type="button" class="btn" disabled') == 2
    assert "its 2 members are active" in page


def test_members_of_many_partitions_are_listed_with_ranges(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(rows.group("billing"), rows.pair("billing", "orders", partitions=60))
    told.answers["/group"] = detail(
        partitions=[partition("orders", index, owner="m-1") for index in range(60)],
        members=[["m-1", None, "app", "/10.0.0.1", [["orders", [*range(59), 70]]], 0]],
    )

    page = alice.get("/group", {"name": "billing"}).content.decode()

    assert "<b>orders</b> 0–58, 70" in page


def test_partitions_are_told_a_hundred_at_a_time(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(rows.group("billing"), rows.pair("billing", "orders", partitions=350))
    told.answers["/group"] = detail(
        partitions=[partition("orders", index) for index in range(100)], count=350
    )

    page = alice.get("/group", {"name": "billing", "page": "2"}).content.decode()

    assert told.asked[-1][1]["first"] == 100
    assert told.asked[-1][1]["rows"] == 100
    assert "101–200 of 350" in page
    assert "page=3" in page


def test_group_in_trouble_without_lag_is_not_said_to_be_caught_up(
    alice: Client, told: Told
) -> None:
    cluster_rows.cluster()
    told.put(rows.group("flapping", verdict="rebalancing", recent_rebalances=29))
    told.answers["/group"] = detail()

    page = alice.get("/group", {"name": "flapping"}).content.decode()

    assert "It has no lag at the moment" in page
    assert "nothing waits" not in page
    assert "Caught up" not in page


def test_verdict_of_a_group_is_as_new_as_those_of_its_partitions(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(rows.group("billing"), rows.pair("billing", "orders"))
    words = {"verdict": "stopped", "rule": "no commits", "lag": 1_200}
    told.answers["/group"] = detail(
        partitions=[partition("orders", 3, lag=1_200)],
        row=rows.group("billing", **words),
        pairs=[rows.pair("billing", "orders", **words)],
    )

    page = alice.get("/group", {"name": "billing"}).content.decode()

    assert page.count(">Stopped<") >= 3
    assert ">OK<" not in page


@pytest.mark.parametrize("name", HOSTILE)
def test_a_group_of_any_name_has_a_page_that_its_link_leads_to(
    alice: Client, told: Told, name: str
) -> None:
    cluster_rows.cluster()
    told.put(rows.group(name), rows.pair(name, "orders"))
    told.answers["/group"] = detail(members=[[name, name, name, name, [], 0]])

    listed = shown_list(alice)
    found = re.search(r'<th scope="row"><a href="([^"]*)">', listed)
    assert found is not None
    answer = alice.get(found.group(1).replace("&amp;", "&"))

    assert answer.status_code == 200
    assert told.asked[-1] == ("/group", {"name": name, "topic": "", "first": 0, "rows": 100})
    for page in (listed, answer.content.decode()):
        assert "<script>alert" not in page
        # A script reads the name as it is; what can be seen has no control and no trick in it.
        seen = re.sub(r'data-name="[^"]*"', "", page)
        assert "\u202e" not in seen
        assert "\0" not in seen


def test_every_name_comes_through_an_asgi_server_as_it_is(told: Told) -> None:
    """As bytes of a query, which is what a server hands on."""
    cluster_rows.cluster()
    browser = AsyncClient()
    browser.force_login(users.user("alice"))
    told.answers["/group"] = detail()
    told.put(*(rows.group(name) for name in HOSTILE))

    async def story() -> None:
        for name in HOSTILE:
            answer = await browser.get("/group?" + urlencode({"name": name}))
            assert answer.status_code == 200
            assert told.asked[-1][1]["name"] == name

    asyncio.run(story())


def test_an_address_by_path_leads_to_the_one_that_carries_every_name(alice: Client) -> None:
    answer = alice.get("/groups/a%2Fb%20c", {"cluster": CLUSTER})

    assert answer["Location"] == "/group?" + urlencode({"name": "a/b c", "cluster": CLUSTER})


def test_a_group_that_is_gone_is_not_found(alice: Client) -> None:
    cluster_rows.cluster()

    answer = alice.get("/group", {"name": "gone"})

    assert answer.status_code == 404
    assert "No group of this name" in answer.content.decode()


def test_a_group_is_shown_by_its_table_where_the_collector_has_died(
    alice: Client, told: Told
) -> None:
    cluster_rows.cluster()
    told.put(rows.group("billing", lag=7), rows.pair("billing", "orders", lag=7))
    told.go_silent(age_s=42.0)

    page = alice.get("/group", {"name": "billing"}).content.decode()

    assert "42 s ago</time>; the collector has sent none since" in page
    assert "orders" in page
    assert "Members and partitions are not known" in page


def test_a_collector_that_never_told_is_no_missing_group(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.begin_silent()

    page = alice.get("/group", {"name": "billing"}).content.decode()

    assert "The state of this group is unknown" in page


def test_a_group_is_not_narrowed_to_a_topic_that_a_user_may_not_see(
    client: Client, told: Told
) -> None:
    cluster_rows.cluster()
    told.put(rows.group("billing", topics=1), rows.pair("billing", "secret"))
    told.answers["/group"] = detail()
    user = users.user("tim", role=None)
    users.grant(user, Operation.VIEW, kind=Kind.GROUP)
    client.force_login(user)

    client.get("/group", {"name": "billing", "topic": "secret"})

    assert [query["topic"] for path, query in told.asked if path == "/group"] == [""]


def test_topics_that_a_user_may_not_see_are_counted_and_not_named(
    client: Client, told: Told
) -> None:
    cluster_rows.cluster()
    told.put(
        rows.group("billing", lag=7, verdict="stopped", topics=2),
        rows.pair("billing", "secret", lag=7, verdict="stopped"),
        rows.pair("billing", "open"),
    )
    told.answers["/group"] = detail(
        topics=[["secret", 1, 0.0, 0.0, 0, 1_700_000_000_000, "stopped"]],
        partitions=[partition("secret", 0, lag=7, owner="m")],
        members=[["m", None, "app", "/h", [["secret", [0]]], 7]],
        unowned=[["secret", 1]],
    )
    user = users.user("tim", role=None)
    users.grant(user, Operation.VIEW, kind=Kind.GROUP)
    users.grant(user, Operation.VIEW, kind=Kind.TOPIC, pattern="open")
    client.force_login(user)

    page = client.get("/group", {"name": "billing"}).content.decode()

    assert "secret" not in page
    assert "1 that you may not see count in the lag of the group" in page
    assert "a topic that you may not see" in page


def test_group_of_a_connector_names_it_with_its_state(alice: Client, told: Told) -> None:
    sink = connectors.connector(cluster_rows.cluster().cluster_id, "shop", kind="sink")
    connectors.task(sink, figures=connectors.losing())
    told.put(rows.group("connect-shop"), rows.group("connect-other"))

    listed = shown_list(alice)
    page = alice.get("/group", {"name": "connect-shop", "cluster": CLUSTER}).content.decode()

    assert listed.count("<small>connector <a") == 1
    assert f'<a href="/connectors/shop?cluster={CLUSTER}">shop</a> <span class="st bad"' in listed
    assert "This is the group of the connector <a" in page
    assert "100 of the last 100 records were not written." in page
    other = alice.get("/group", {"name": "connect-other", "cluster": CLUSTER}).content.decode()
    assert "the group of the connector" not in other
