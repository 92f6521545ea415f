"""What is done to topics, as a browser goes through it: form, preview, apply."""

import re
from html import unescape

import pytest
from django.test import Client

from brokers.cluster import levels
from brokers.controlplane import models
from gateway.access.operations import Kind, Operation
from tests.builders import live, users
from tests.builders.live import Told
from tests.console import cluster_rows, plan_pages

CLUSTER = f"cluster={cluster_rows.CLUSTER_ID}"
NEW = f"/topics/+new?{CLUSTER}"


@pytest.fixture
def cluster() -> models.Cluster:
    made = cluster_rows.cluster()
    models.ProducerIds.objects.create(cluster=made)
    models.Cluster.objects.update(metadata_level=levels.KNOWN_LEVEL)
    made.refresh_from_db()
    cluster_rows.broker(made, 1)
    return made


def sent(browser: Client, address: str, **fields: object) -> str:
    return unescape(browser.post(address, fields).content.decode())


def applied(browser: Client, page: str) -> str:
    """Apply the plan of a preview; return where that leads."""
    answer = plan_pages.applied(browser, page)
    assert answer.status_code == 302, answer.content.decode()
    return answer["Location"]


def configs_of(name: str) -> dict[str, str]:
    row = models.ResourceConfig.objects.filter(name=name).first()
    return {} if row is None else row.configs


def tell_of_use(told: Told) -> None:
    told.put(
        live.topic("orders", records_per_s=12.0, bytes_in_per_s=2048.0),
        live.group("billing", members=3),
        live.group("idle", members=0, state="Empty"),
    )
    told.answers["/topic"] = {
        "ms": live.NOW_MS,
        "partitions": [],
        "groups": ["billing", "idle"],
        "is_cut": False,
    }


# --- create --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("cluster")
def test_a_topic_is_created_through_a_preview_which_leads_to_it(alice: Client) -> None:
    page = sent(
        alice,
        NEW,
        name="orders",
        partitions="2",
        key=["retention.ms", ""],
        value=["86400000", ""],
    )
    assert not models.Topic.objects.exists()

    where = applied(alice, page)

    assert where == f"/topics/orders?{CLUSTER}"
    assert models.Topic.objects.get().name == "orders"
    assert configs_of("orders") == {"retention.ms": "86400000"}
    assert "Create topic orders with 2 partitions, on one broker each" in unescape(page)
    assert "topic id" not in page
    assert "retention.ms" in page


def test_a_name_that_a_user_may_not_view_is_refused_alike_whether_there_is_such_a_topic(
    cluster: models.Cluster,
) -> None:
    cluster_rows.topic(cluster, "secret")
    user = users.user("tim", role=None)
    for operation in (Operation.VIEW, Operation.CREATE_TOPICS):
        users.grant(user, operation, kind=Kind.TOPIC, pattern="open-*")
    browser = Client()
    browser.force_login(user)

    there, missing = (browser.post(NEW, {"name": name}) for name in ("secret", "nothing"))

    assert there.status_code == missing.status_code == 403
    assert "exists" not in there.content.decode()


@pytest.mark.usefixtures("cluster")
def test_a_topic_is_made_in_no_other_cluster_than_the_one_that_was_named(alice: Client) -> None:
    answer = alice.post("/topics/+new?cluster=gone", {"name": "orders"})

    assert answer.status_code == 404


@pytest.mark.usefixtures("cluster")
def test_fields_that_are_left_empty_are_the_clusters_choice(alice: Client) -> None:
    applied(alice, sent(alice, NEW, name="orders"))

    assert models.Partition.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": ""}, "the topic name '' is empty"),
        ({"name": ".."}, "the topic name '..' is the name of a folder"),
        ({"name": "a b"}, "characters other than letters"),
        ({"name": "é"}, "characters other than letters"),
        ({"name": "a" * 250}, "has 250 characters, 249 are allowed"),
        ({"name": "a_b"}, "the existing topic 'a.b' differ in '.' and '_' only"),
        ({"name": "a.b"}, "Topic 'a.b' already exists."),
        ({"name": "__cluster_metadata"}, "Kafka's own metadata"),
        ({"partitions": "0"}, "“0” is not a number of partitions: give 1 to 10,000"),
        ({"partitions": "9" * 40}, "is not a number of partitions"),
        ({"partitions": "-1"}, "“-1” is not a number of partitions"),
        ({"rate": "fast"}, "“fast” is not a rate"),
        ({"rate": "nan"}, "“nan” is not a rate"),
        (
            {"key": "retention.ms", "value": "soon"},
            "retention.ms: “soon” is not a duration: write 2d, 12h",
        ),
        ({"key": "retention.msx", "value": "1"}, "Unknown topic config name: retention.msx"),
        ({"key": "", "value": "1"}, "“1” has no config in front of it"),
        ({"key": ["preallocate"] * 2, "value": ["false"] * 2}, "preallocate is given twice"),
        ({"key": "preallocate", "value": "true"}, "would have no effect"),
        ({"key": "retention.ms", "value": "9" * 65_536}, "has 65536 characters, 1024 are allowed"),
        (
            {
                "key": ["min.compaction.lag.ms", "max.compaction.lag.ms"],
                "value": ["2", "1"],
            },
            "records could never be compacted in time",
        ),
    ],
)
def test_what_is_wrong_with_a_new_topic_stands_in_the_form(
    cluster: models.Cluster, alice: Client, fields: dict[str, object], words: str
) -> None:
    cluster_rows.topic(cluster, "a.b")

    answer = alice.post(NEW, {"name": "orders", **fields})

    assert answer.status_code == 400
    assert words in unescape(answer.content.decode())
    assert "Apply this plan" not in answer.content.decode()


@pytest.mark.usefixtures("cluster")
def test_a_config_with_markup_stays_a_text(alice: Client) -> None:
    page = alice.post(
        NEW, {"name": "<b>x", "key": "<script>", "value": '"><script>alert(1)</script>'}
    ).content.decode()

    assert "<script>alert" not in page
    assert "<b>x" not in page


def test_a_suggestion_comes_with_its_reason(cluster: models.Cluster, alice: Client) -> None:
    for number in (2, 3):
        cluster_rows.broker(cluster, number)

    page = sent(alice, NEW, name="orders", rate="35", do="suggest")

    assert 'name="partitions" value="6"' in page
    assert "Suggested: 6, since 35 MiB/s need 4 at 10 MiB/s each" in page
    assert "a multiple of 3 brokers gives each 2 to lead" in page
    assert 'value="orders"' in page


@pytest.mark.usefixtures("cluster")
def test_there_is_room_for_more_configs(alice: Client) -> None:
    page = sent(alice, NEW, key="retention.ms", value="5", do="more")

    assert page.count('name="key"') == 4
    assert "segments whose newest record" in page


@pytest.mark.usefixtures("cluster")
def test_a_form_without_its_token_does_nothing() -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(users.user("anna"))

    for address in (NEW, "/plans/preview"):
        assert browser.post(address, {"name": "orders"}).status_code == 403


@pytest.mark.parametrize(
    "address", [NEW, "/topics/orders/edit", "/topics/orders/partitions", "/topics/orders/delete"]
)
def test_a_viewer_reaches_no_form(cluster: models.Cluster, victor: Client, address: str) -> None:
    cluster_rows.topic(cluster, "orders")

    for answer in (victor.get(address), victor.post(address, {"name": "orders", "count": "9"})):
        assert answer.status_code == 403


@pytest.mark.parametrize("form", ["edit", "partitions", "delete"])
def test_rights_on_another_topic_do_not_open_a_form(cluster: models.Cluster, form: str) -> None:
    cluster_rows.topic(cluster, "orders")
    some = users.user("some", role=None)
    users.grant(some, Operation.VIEW, kind=Kind.TOPIC)
    for operation in (Operation.ALTER_CONFIGS, Operation.ALTER_TOPICS, Operation.DELETE_TOPICS):
        users.grant(some, operation, kind=Kind.TOPIC, pattern="mine*")
    browser = Client()
    browser.force_login(some)

    assert browser.get(f"/topics/orders/{form}?{CLUSTER}").status_code == 403
    assert browser.get(f"/topics/mine/{form}?{CLUSTER}").status_code == 404


# --- edit ----------------------------------------------------------------------------------------


def test_configs_are_set_and_unset_through_a_preview(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(
        cluster, "orders", configs={"retention.ms": "1000", "segment.bytes": "2000000"}
    )

    page = sent(
        alice,
        "/topics/orders/edit",
        **{
            "value-retention.ms": "",
            "was-retention.ms": "1000",
            "value-segment.bytes": "2000000",
            "was-segment.bytes": "2000000",
            "value-cleanup.policy": "compact",
        },
    )
    where = applied(alice, page)

    assert where == f"/topics/orders?tab=configs&{CLUSTER}"
    assert configs_of("orders") == {"cleanup.policy": "compact", "segment.bytes": "2000000"}
    assert "producers that send records without a key are refused" in page
    assert "Unset retention.ms and set cleanup.policy to compact" in page


def test_retention_is_typed_in_units_and_previewed_in_words(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(cluster, "orders", configs={"retention.bytes": "5368709120"})
    typed = {"value-retention.ms": "2d", "value-retention.bytes": "5 GiB"}

    page = sent(alice, "/topics/orders/edit", **typed, **{"was-retention.bytes": "5368709120"})
    applied(alice, page)

    assert "older than 2 d (172800000 ms) are deleted" in page
    assert "2 d</small>" in page
    assert "retention.ms=172800000" in page
    assert configs_of("orders") == {"retention.ms": "172800000", "retention.bytes": "5368709120"}


def test_what_others_set_meanwhile_is_left_alone(cluster: models.Cluster, alice: Client) -> None:
    cluster_rows.topic(cluster, "orders", configs={"segment.ms": "5000"})

    # The form was made before segment.ms was set.
    applied(alice, sent(alice, "/topics/orders/edit", **{"value-retention.ms": "7"}))

    assert configs_of("orders") == {"retention.ms": "7", "segment.ms": "5000"}


def test_a_list_can_be_set_to_nothing(cluster: models.Cluster, alice: Client) -> None:
    cluster_rows.topic(cluster, "orders")

    page = sent(alice, "/topics/orders/edit", **{"empty-cleanup.policy": "on"})
    applied(alice, page)

    assert configs_of("orders") == {"cleanup.policy": ""}
    form = alice.get("/topics/orders/edit").content.decode()
    assert "checked" in form
    assert ">7 d<" in form


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Nothing was changed here"),
        ({"value-nothing": "1", "value-preallocate": "true"}, "Nothing was changed here"),
        ({"value-retention.ms": "soon"}, "“soon” is not a duration: write 2d, 12h"),
        ({"value-retention.ms": "<b>" * 20_000}, "has 60000 characters, 1024 are allowed"),
        (
            {"value-min.compaction.lag.ms": "2", "value-max.compaction.lag.ms": "1"},
            "records could never be compacted in time",
        ),
    ],
)
def test_what_is_wrong_with_an_edit_stands_in_the_form(
    cluster: models.Cluster, alice: Client, fields: dict[str, object], words: str
) -> None:
    cluster_rows.topic(cluster, "orders")

    answer = alice.post("/topics/orders/edit", fields)

    assert answer.status_code == 400
    assert words in unescape(answer.content.decode())
    assert "<b>" not in answer.content.decode()


# --- grow ----------------------------------------------------------------------------------------


def test_partitions_are_added_once_it_was_seen_what_follows(
    cluster: models.Cluster, alice: Client, told: Told
) -> None:
    cluster_rows.topic(cluster, "orders", partitions=2)
    tell_of_use(told)

    form = unescape(alice.get("/topics/orders/partitions").content.decode())
    page = sent(alice, "/topics/orders/partitions", count="4")
    where = applied(alice, page)

    for text in (form, page):
        assert "billing (3 members)" in text
        assert "Producers write 12 records/s (2 KiB/s) to it." in text
    assert ">50%<" in form
    assert "About 50% of the keys go to another partition" in page
    assert "Partitions can only be added: this cannot be taken back." in page
    assert where == f"/topics/orders?tab=partitions&{CLUSTER}"
    assert models.Partition.objects.count() == 4


@pytest.mark.parametrize("count", ["", "2", "0", "-3", "x", "10001", "9" * 30])
def test_a_number_that_is_none_to_grow_to_is_refused_with_it(
    cluster: models.Cluster, alice: Client, count: str
) -> None:
    cluster_rows.topic(cluster, "orders", partitions=2)

    page = sent(alice, "/topics/orders/partitions", count=count)

    assert f"“{count}” is not a possible number of partitions: give 3 to 10,000" in page


def test_an_internal_topic_says_what_it_keeps_before_it_is_touched(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(cluster, "__consumer_offsets")

    for form in ("edit", "partitions"):
        page = alice.get(f"/topics/__consumer_offsets/{form}").content.decode()
        assert "Brokers keep the committed offsets of every group" in page
    grown = sent(alice, "/topics/__consumer_offsets/partitions", count="9")
    asked = alice.get("/topics/__consumer_offsets/delete").content.decode()
    gone = sent(alice, "/topics/__consumer_offsets/delete", typed="__consumer_offsets")
    assert "INVALID_TOPIC_EXCEPTION" in grown
    assert "Deleting __consumer_offsets loses all consumer groups" in asked
    assert "begins where its auto.offset.reset says" in gone
    assert "./samsa topics delete __consumer_offsets --force" in gone


# --- delete --------------------------------------------------------------------------------------


def test_a_topic_is_deleted_once_its_name_is_typed(
    cluster: models.Cluster, alice: Client, told: Told
) -> None:
    cluster_rows.topic(cluster, "orders")
    tell_of_use(told)

    form = unescape(alice.get("/topics/orders/delete").content.decode())
    wrong = alice.post("/topics/orders/delete", {"typed": "order"})
    page = sent(alice, "/topics/orders/delete", typed="orders")

    assert "lose what they have not read yet" in form
    assert "without members that have committed offsets of it: idle" in form
    assert wrong.status_code == 400
    assert "not the name of the topic: type orders, or cancel" in wrong.content.decode()
    assert applied(alice, page) == f"/topics?{CLUSTER}"
    assert not models.Topic.objects.exists()


def test_without_the_collector_a_form_says_that_use_is_not_known(
    cluster: models.Cluster, alice: Client, told: Told
) -> None:
    cluster_rows.topic(cluster, "orders")
    told.begin_silent()

    page = alice.get("/topics/orders/delete").content.decode()

    assert "Its producers and consumers are unknown" in page


# --- what has moved ------------------------------------------------------------------------------


def test_a_plan_that_was_overtaken_is_previewed_again(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(cluster, "orders", partitions=2)
    mine = sent(alice, "/topics/orders/partitions", count="6")
    applied(alice, sent(alice, "/topics/orders/partitions", count="4"))
    found = re.search(r'name="plan" value="([^"]+)"', mine)
    assert found is not None

    refused = alice.post("/plans/apply", {"plan": found[1]})
    words = unescape(refused.content.decode())
    again = sent(alice, "/plans/preview", plan=found[1])

    assert refused.status_code == 409
    assert "topic orders was at version 1" in words
    assert "Preview again" in words
    assert applied(alice, again) == f"/topics/orders?tab=partitions&{CLUSTER}"
    assert models.Partition.objects.count() == 6


@pytest.mark.parametrize(
    ("address", "fields", "moved"),
    [
        (NEW, {"name": "fresh"}, "topic fresh exists now"),
        ("/topics/orders/edit", {"value-segment.ms": "9"}, "the configuration of topic orders"),
        ("/topics/orders/partitions", {"count": "9"}, "topic orders was at version 1"),
        ("/topics/orders/delete", {"typed": "orders"}, "topic orders was at version 1"),
    ],
)
def test_a_plan_of_each_kind_is_refused_once_what_it_rests_on_has_moved(
    cluster: models.Cluster, alice: Client, address: str, fields: dict[str, object], moved: str
) -> None:
    cluster_rows.topic(cluster, "orders", partitions=2)
    found = re.search(r'name="plan" value="([^"]+)"', sent(alice, address, **fields))
    assert found is not None
    for other, given in (
        (NEW, {"name": "fresh"}),
        ("/topics/orders/edit", {"value-retention.ms": "7"}),
        ("/topics/orders/partitions", {"count": "3"}),
    ):
        applied(alice, sent(alice, other, **given))

    answer = alice.post("/plans/apply", {"plan": found[1]})

    words = unescape(answer.content.decode())
    assert answer.status_code == 409
    assert moved in words
    assert "Preview again" in words
    assert models.Topic.objects.filter(name="orders").exists()
    assert configs_of("orders") == {"retention.ms": "7"}


def test_a_topic_that_was_deleted_meanwhile_is_said_to_be_gone(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(cluster, "orders", partitions=2)
    found = re.search(
        r'name="plan" value="([^"]+)"', sent(alice, "/topics/orders/partitions", count="4")
    )
    assert found is not None
    applied(alice, sent(alice, "/topics/orders/delete", typed="orders"))

    refused = sent(alice, "/plans/apply", plan=found[1])
    again = sent(alice, "/plans/preview", plan=found[1])

    assert "topic orders (version 1) is gone" in refused
    assert "there is no topic 'orders'" in again


@pytest.mark.usefixtures("cluster")
def test_only_a_plan_that_was_shown_is_previewed_again(alice: Client) -> None:
    assert alice.post("/plans/preview", {"plan": "x"}).status_code == 400
    assert alice.get("/plans/preview")["Location"] == "/"
