"""The catalogue, the form of a connector made from its definition, and what is shown before."""

import html
import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from brokers.controlplane import audit
from brokers.controlplane import models as controlplane
from connectors import models, selectors
from connectors.sdk.errors import ConfigError
from gateway.access.operations import Kind, Operation
from tests.builders import connectors as rows
from tests.builders import users
from tests.console import cluster_rows
from tests.console.plan_pages import applied

CLUSTER = cluster_rows.CLUSTER_ID
CATALOGUE = f"{reverse('console:connector-catalogue')}?cluster={CLUSTER}"
NEW = reverse("console:new-connector", args=["samsa.datagen"])
HTTP = reverse("console:new-connector", args=["samsa.http.sink"])
CONFIG = {
    "name": "shop",
    "connector.class": "samsa.datagen",
    "topic": "orders",
    "records.per.second": "5",
}


@pytest.fixture(autouse=True)
def cluster() -> None:
    cluster_rows.cluster()


def text_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def fields(config: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"cluster": CLUSTER, **{f"key-{key}": text for key, text in config.items()}, **more}


def hidden(answer: Any, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', answer.content.decode())
    assert found is not None, name
    return html.unescape(found[1])


def test_the_catalogue_shows_plugins_that_could_not_be_read(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = selectors.BrokenPlugin(origin="plugins/clouds", reason="ImportError: no sky")
    monkeypatch.setattr("connectors.selectors.broken_plugins", lambda: [broken])

    page = text_of(alice.get(CATALOGUE))

    assert "Not loaded" in page
    assert "plugins/clouds" in page
    assert "ImportError: no sky" in page


def test_the_catalogue_shows_what_can_be_made_and_leads_to_its_form(alice: Client) -> None:
    page = text_of(alice.get(CATALOGUE))

    assert "Made-up records" in page
    assert f'href="{NEW}?cluster=' in page
    assert "samsa.http.sink" in page
    assert "Create connector" in text_of(alice.get(f"/connectors?cluster={CLUSTER}"))


def test_a_plugin_whose_extra_is_missing_says_how_to_install_it(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.registry._is_here", lambda _needed: False)
    monkeypatch.setattr("connectors.plugins.datagen.connector.Datagen.modules", ("antigravity",))

    line = (
        "samsa.datagen needs packages that are not installed (antigravity): run"
        " <code>pip install antigravity</code>"
    )
    assert line in text_of(alice.get(CATALOGUE))
    assert line in text_of(alice.get(f"{NEW}?cluster={CLUSTER}"))


def test_a_form_leads_to_the_button_that_installs_what_it_lacks_and_says_it_once(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.registry._is_here", lambda _needed: False)
    monkeypatch.setattr("connectors.plugins.datagen.connector.Datagen.modules", ("antigravity",))
    monkeypatch.setattr("connectors.plugins.datagen.connector.Datagen.extra", "flight")
    button = f'<a href="/extras?cluster={CLUSTER}">install flight here</a>'

    page = text_of(alice.post(NEW, fields(CONFIG)))

    assert button in page
    assert button in text_of(alice.get(CATALOGUE))
    assert page.count("<code>./samsa extras install flight</code>") == 1
    assert "Install its packages first." in page
    assert "each says what it needs" not in page


def test_what_the_connector_says_of_the_whole_is_told_above_the_fields(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_self: object, _parsed: object) -> None:
        raise ConfigError("the other side does not answer: start it")

    monkeypatch.setattr("connectors.plugins.datagen.connector.Datagen.validate", away)

    answer = alice.post(NEW, fields(CONFIG))

    assert answer.status_code == 400
    assert "the other side does not answer: start it" in text_of(answer)


def test_a_value_of_blanks_and_one_of_nothing_come_back_as_they_are(alice: Client) -> None:
    stored = {**CONFIG, "key.field": "", "topic": " orders"}
    rows.connector(CLUSTER, "shop", config=stored)
    line = {"other-key": "key.field", "other-value": ""}

    _, answer = edit(alice, "shop", {**CONFIG, "topic": " orders"}, **line)

    assert "Nothing was changed here" in text_of(answer)
    page = text_of(answer)
    assert 'name="key-topic" value=" orders"' in page
    assert 'name="other-key" value="key.field"' in page


def test_a_form_asks_for_what_matters_first_and_reproaches_nothing(alice: Client) -> None:
    page = text_of(alice.get(f"{NEW}?cluster={CLUSTER}"))

    assert "The number of records that each task generates in a second." in page
    assert page.index('name="key-name"') < page.index('name="key-topic"')
    assert page.index('name="key-topic"') < page.index('name="key-errors.tolerance"')
    assert "<option>users</option>" in page
    assert "It has no default" not in page
    assert "2 still to fill in" in page


def test_topics_that_the_user_may_see_are_offered(alice: Client) -> None:
    shown = controlplane.Cluster.objects.get()
    for name in ("orders", "__consumer_offsets"):
        cluster_rows.topic(shown, name)

    page = text_of(alice.get(NEW))

    assert 'name="key-topic" value="" placeholder="" list="known-topics"' in page
    assert '<datalist id="known-topics"><option value="orders"></datalist>' in page


def test_a_key_that_takes_a_few_words_offers_them(alice: Client) -> None:
    page = text_of(alice.post(NEW, fields({**CONFIG, "errors.tolerance": "some"}, do="check")))

    choice = page[page.index('<select id="id-errors.tolerance"') :]
    choice = choice[: choice.index("</select>")]
    assert re.findall("<option[^>]*>([^<]*)", choice) == [
        "none (default)",
        "some",
        "none",
        "all",
    ]
    assert "<option selected>some" in choice


def test_a_form_is_at_its_address_without_a_cluster_too(alice: Client) -> None:
    rows.connector(CLUSTER, "shop")
    here = reverse("console:edit-connector", args=["shop"])

    answer = alice.get(here)

    assert (answer.status_code, answer["Location"]) == (302, f"{here}?cluster={CLUSTER}")
    assert alice.post(here, fields(CONFIG, cluster="")).status_code == 404


def test_what_is_typed_is_checked_beside_its_field(alice: Client) -> None:
    sent = fields({**CONFIG, "tasks.max": "many"}, do="check", live="1")

    answer = alice.post(NEW, sent)

    page = text_of(answer)
    assert answer.status_code == 200
    assert "Invalid value many for configuration tasks.max: Not a number of type INT" in page
    assert "1 value is wrong or missing" in page
    assert models.Connector.objects.count() == 0


def test_a_transform_that_is_named_gets_its_fields(alice: Client) -> None:
    config = {
        **CONFIG,
        "transforms": "hide",
        "transforms.hide.type": "org.apache.kafka.connect.transforms.MaskField$Value",
    }

    page = text_of(alice.post(NEW, fields(config, do="check")))

    assert 'name="key-transforms.hide.fields"' in page
    assert "It has no default: give a value." in page


def test_a_connector_is_created_as_its_preview_says(alice: Client) -> None:
    preview = alice.post(NEW, fields(CONFIG))

    page = text_of(preview)
    assert preview.status_code == 200
    assert "This will be created" in page
    assert "It will write into orders." in page
    assert "./samsa connectors apply -f -" in page
    assert "/connect/connectors/shop/config" in page
    assert models.Connector.objects.count() == 0

    answer = applied(alice, preview)

    row = models.Connector.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/connectors/shop?cluster={CLUSTER}")
    assert (row.name, row.config["records.per.second"], row.state) == ("shop", "5", "UNASSIGNED")
    assert [entry.name for entry in audit.entries(cluster_id=CLUSTER)] == ["shop"]


def test_fields_are_named_in_words_with_their_key_beside(alice: Client) -> None:
    page = text_of(alice.get(f"{NEW}?cluster={CLUSTER}"))

    assert 'Records per second <small class="mono">records.per.second</small>' in page
    assert 'class="do stuck"><button class="btn main">Preview' in page


def test_durations_are_typed_in_units_and_stored_as_numbers(alice: Client) -> None:
    typed = {**CONFIG, "errors.retry.timeout": "5 min", "errors.retry.delay.max.ms": "1m30s"}

    checked = alice.post(NEW, fields(typed, do="check"))
    preview = alice.post(NEW, fields(typed))
    applied(alice, preview)

    assert 'value="5 min"' in text_of(checked)
    assert '"errors.retry.timeout": "300000"' in text_of(checked)
    assert "1 min 30 s" in text_of(preview)
    config = models.Connector.objects.get().config
    assert config["errors.retry.timeout"] == "300000"
    assert config["errors.retry.delay.max.ms"] == "90000"


def test_a_wrong_config_gets_no_preview(alice: Client) -> None:
    answer = alice.post(NEW, fields({**CONFIG, "quickstart": "cats"}))

    assert answer.status_code == 400
    assert "Invalid value cats for configuration quickstart" in text_of(answer)
    assert 'name="plan"' not in text_of(answer)


def test_a_password_is_on_no_page_and_is_stored_all_the_same(alice: Client) -> None:
    config = {
        "name": "calls",
        "connector.class": "samsa.http.sink",
        "topics": "orders",
        "http.url": "https://example.org/",
        "http.authorization.type": "static",
        "http.headers.authorization": "Bearer very-secret-7",
    }
    checked = alice.post(HTTP, fields(config, do="check"))
    del config["http.headers.authorization"]
    again = fields(config, held="http.headers.authorization", sealed=hidden(checked, "sealed"))

    preview = alice.post(HTTP, again)
    back = alice.post(
        HTTP,
        {"cluster": CLUSTER, "do": "back", "plan": hidden(preview, "plan")},
    )
    made = applied(alice, preview)

    assert [page.status_code for page in (checked, preview, back, made)] == [200, 200, 200, 302]
    for page in (checked, preview, back):
        assert b"very-secret-7" not in page.content
    assert "[hidden]" in text_of(preview)
    assert "kept: leave empty to keep it" in text_of(back)
    stored = models.Connector.objects.get().config["http.headers.authorization"]
    assert set(stored) == {"sealed"}
    assert "very-secret-7" not in json.dumps(stored)


def test_what_somebody_else_typed_opens_for_nobody(alice: Client) -> None:
    config = {"connector.class": "samsa.http.sink", "http.headers.authorization": "very-secret-7"}
    checked = alice.post(HTTP, fields(config, do="check"))
    thief = Client()
    thief.force_login(users.user("mallory"))

    answer = thief.post(HTTP, fields({}, do="check", sealed=hidden(checked, "sealed")))

    assert answer.status_code == 400
    assert "fill in the passwords again" in text_of(answer)
    for damaged in ("{", "[1]", '{"a": 1}', '{"a": {"sealed": "x"}}', "[" * 5000):
        assert alice.post(HTTP, fields({}, do="check", sealed=damaged)).status_code == 400


def test_json_is_taken_over_into_the_fields(alice: Client) -> None:
    text = json.dumps({"name": "shop", "config": {**CONFIG, "tasks.max": 3, "x.y": "<i>z</i>"}})

    answer = alice.post(NEW, fields({}, do="json", json=text))

    page = answer.content.decode()
    assert 'name="key-tasks.max" value="3"' in page
    assert 'value="x.y"' in page
    assert "<i>z" not in page
    assert "has no config x.y, so it has no effect" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"name": "a",\n "topic" "b"}', "line 2, column 10: Expecting ':' delimiter"),
        ('["a"]', "a config is an object"),
        ('{"a": null}', "a is null"),
        ('{"a": []}', "a is a list or an object"),
        ('{"a": "1", "a": "2"}', "a is given twice"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("[" * 100_000, "it is nested too deeply"),
        ("", "line 1, column 1"),
    ],
)
def test_json_that_is_no_config_says_where_and_stays(text: str, said: str, alice: Client) -> None:
    answer = alice.post(NEW, fields(CONFIG, do="json", json=text))

    assert answer.status_code == 400
    assert said in text_of(answer)
    assert 'name="key-topic" value="orders"' in text_of(answer)


def test_lines_hold_keys_of_no_field_each_once(alice: Client) -> None:
    other = {"other-key": ["producer.override.linger.ms", ""], "other-value": ["7", ""]}
    assert "producer.override.linger.ms" in text_of(alice.post(NEW, fields(CONFIG, **other)))

    twice = alice.post(NEW, fields(CONFIG, **{"other-key": "topic", "other-value": "b"}))
    nameless = alice.post(NEW, fields(CONFIG, **{"other-key": "", "other-value": "b"}))

    assert "topic is given twice" in text_of(twice)
    assert "“b” has no key" in text_of(nameless)
    assert (twice.status_code, nameless.status_code) == (400, 400)


def test_a_name_that_is_taken_is_refused_before_it_is_applied(alice: Client) -> None:
    rows.connector(CLUSTER, "shop")

    answer = alice.post(NEW, fields(CONFIG))

    assert answer.status_code == 400
    assert "Connector shop already exists" in text_of(answer)


def edit(user: Client, name: str, config: dict[str, str], **more: Any) -> Any:
    address = reverse("console:edit-connector", args=[name])
    shown = user.get(f"{address}?cluster={CLUSTER}")
    given = {"generation": hidden(shown, "generation"), **more}
    return address, user.post(address, fields(config, **given))


def test_an_edit_shows_what_changes_and_changes_only_that(alice: Client) -> None:
    rows.connector(CLUSTER, "shop", config=CONFIG)

    _, preview = edit(alice, "shop", {**CONFIG, "records.per.second": "9"})
    cells = re.findall(r'<td class="mono long">(.*?)</td>', preview.content.decode())
    answer = applied(alice, preview)

    row = models.Connector.objects.get()
    assert cells == ["5", "9"]
    assert (answer.status_code, row.generation) == (302, 2)
    assert row.config == {**CONFIG, "records.per.second": "9"}


def test_the_same_config_again_is_taken_over_where_it_has_failed(alice: Client) -> None:
    rows.connector(CLUSTER, "shop", config=CONFIG, state="FAILED")

    _, preview = edit(alice, "shop", CONFIG)
    answer = applied(alice, preview)

    assert "uses your rights from now on" in text_of(preview)
    row = models.Connector.objects.get()
    assert (answer.status_code, row.generation, row.state) == (302, 2, "UNASSIGNED")
    assert {claim["name"] for claim in row.claims or ()} == {"alice"}


def test_an_edit_that_changes_nothing_says_so(alice: Client) -> None:
    rows.connector(CLUSTER, "shop", config=CONFIG)

    _, answer = edit(alice, "shop", CONFIG)

    assert answer.status_code == 400
    assert "Nothing was changed here" in text_of(answer)


def test_a_mask_keeps_the_stored_password(alice: Client) -> None:
    config = {
        "name": "calls",
        "connector.class": "samsa.http.sink",
        "topics": "orders",
        "http.url": "https://example.org/",
        "http.authorization.type": "static",
        "http.headers.authorization": "Bearer very-secret-7",
    }
    applied(alice, alice.post(HTTP, fields(config)))
    stored = models.Connector.objects.get().config["http.headers.authorization"]
    del config["http.headers.authorization"]

    _, preview = edit(
        alice, "calls", {**config, "tasks.max": "2"}, held="http.headers.authorization"
    )
    answer = applied(alice, preview)

    row = models.Connector.objects.get()
    assert (answer.status_code, row.config["tasks.max"]) == (302, "2")
    assert set(row.config["http.headers.authorization"]) == set(stored)
    assert b"very-secret-7" not in preview.content


def test_an_edit_of_what_somebody_changed_meanwhile_is_refused(alice: Client) -> None:
    row = rows.connector(CLUSTER, "shop", config=CONFIG)
    address, preview = edit(alice, "shop", {**CONFIG, "records.per.second": "9"})
    row.generation = 7
    row.save()

    late = alice.post(address, fields(CONFIG, generation="1"))
    later = applied(alice, preview)

    assert (late.status_code, later.status_code) == (409, 409)
    assert "was changed by another user meanwhile, or restarted" in text_of(later)
    assert models.Connector.objects.get().config == CONFIG


def test_rights_decide_who_creates_and_edits_what(olga: Client, victor: Client) -> None:
    rows.connector(CLUSTER, "shop", config=CONFIG)
    rows.connector(CLUSTER, "salaries", config={**CONFIG, "name": "salaries"})
    carl, user = users.user("carl", role=None), Client()
    for operation in (Operation.VIEW, Operation.CREATE_CONNECTORS, Operation.ALTER_CONNECTORS):
        users.grant(carl, operation, kind=Kind.CONNECTOR, pattern="shop*")
    user.force_login(carl)

    assert victor.get(CATALOGUE).status_code == 403
    assert "Create connector" not in text_of(victor.get(f"/connectors?cluster={CLUSTER}"))
    assert "You may not create connectors on connector other" in text_of(
        user.post(NEW, fields({**CONFIG, "name": "other"}))
    )
    # Its author may not write into the topic that it would write into.
    assert "You may not produce" in text_of(user.post(NEW, fields({**CONFIG, "name": "shop-2"})))
    of_another = reverse("console:edit-connector", args=["salaries"])
    assert user.get(f"{of_another}?cluster={CLUSTER}").status_code == 403
    assert victor.get(f"{of_another}?cluster={CLUSTER}").status_code == 403


def test_what_is_not_there_has_no_form(alice: Client) -> None:
    nowhere = reverse("console:new-connector", args=["samsa.nothing"])
    assert alice.get(f"{nowhere}?cluster={CLUSTER}").status_code == 404
    nobody = reverse("console:edit-connector", args=["nobody"])
    assert alice.get(f"{nobody}?cluster={CLUSTER}").status_code == 404
    assert alice.get(f"{NEW}?cluster=elsewhere").status_code == 404


def test_a_job_is_not_asked_for_what_its_engine_does_not_know(alice: Client) -> None:
    sink = reverse("console:new-connector", args=["samsa.spark.sink"])

    page = text_of(alice.get(f"{sink}?cluster={CLUSTER}"))

    for key in ("tasks.max", "tasks.max.enforce", "value.converter", "transforms", "predicates"):
        assert f'name="key-{key}"' not in page
    assert 'name="key-errors.tolerance"' in page
    # The given values are shown nevertheless, with their errors.
    typed = fields({"connector.class": "samsa.spark.sink", "transforms": "mask"}, do="check")
    assert 'name="key-transforms"' in text_of(alice.post(sink, typed))


def test_a_query_is_typed_in_lines_and_its_target_asks_for_what_fits(alice: Client) -> None:
    new = reverse("console:new-connector", args=["samsa.spark.sql"])
    to_table = {"connector.class": "samsa.spark.sql", "table.path": "lake/large"}

    begun = text_of(alice.get(f"{new}?cluster={CLUSTER}"))
    chosen = text_of(alice.post(new, fields(to_table, do="check")))

    assert '<textarea id="id-query"' in begun
    assert 'name="key-topics.regex"' not in begun
    assert '<code class="example">lake/large-orders</code>' in begun
    assert 'name="key-output.key"' in begun
    assert 'name="key-table.format"' not in begun
    assert 'name="key-output.key"' not in chosen
    assert 'name="key-table.format"' in chosen
