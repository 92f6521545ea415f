"""How far a source was read, changed and forgotten from its page; dead letters of a sink."""

import html
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from connectors import models
from connectors.places import digest_of
from console.pages import connector_offsets
from tests.builders import connectors as rows
from tests.console import cluster_rows
from tests.console.plan_pages import applied

CLUSTER = cluster_rows.CLUSTER_ID
PLACE = {"quickstart": "orders", "task": 0}
ADDRESS = reverse("console:connector-offsets", args=["a"])
TAB = f"{reverse('console:connector', args=['a'])}?cluster={CLUSTER}&tab=offsets"


@pytest.fixture(autouse=True)
def cluster() -> None:
    cluster_rows.cluster()


def text_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def source(target: str = "STOPPED") -> None:
    state = "RUNNING" if target == "STARTED" else target
    row = rows.connector(CLUSTER, "a", target=target, state=state)
    models.SourceOffset.objects.create(
        connector=row, digest=digest_of(PLACE), place=PLACE, offset={"number": 900}
    )


def send(user: Client, number: object, **more: str) -> Any:
    offset = None if number is None else {"number": number}
    text = json.dumps({"offsets": [{"partition": PLACE, "offset": offset}]})
    return user.post(ADDRESS, {"cluster": CLUSTER, "offsets": text, **more})


def test_offsets_are_changed_as_the_preview_says(alice: Client) -> None:
    source()
    assert "Alter or reset" in text_of(alice.get(TAB))
    assert '"number": 900' in text_of(alice.get(f"{ADDRESS}?cluster={CLUSTER}"))

    preview = send(alice, 17)
    before = models.SourceOffset.objects.get().offset
    answer = applied(alice, preview)

    assert '{"number": 900}' in text_of(preview)
    assert '{"number": 17}' in text_of(preview)
    assert (before, answer.status_code) == ({"number": 900}, 302)
    assert models.SourceOffset.objects.get().offset == {"number": 17}


def test_offsets_that_moved_since_the_preview_are_not_changed(alice: Client) -> None:
    source()
    preview = send(alice, 17)
    models.SourceOffset.objects.update(offset={"number": 901})

    answer = applied(alice, preview)

    assert "has changed since you looked" in text_of(answer)
    assert models.SourceOffset.objects.get().offset == {"number": 901}


def test_they_are_at_their_address_without_a_cluster_too(alice: Client) -> None:
    source()

    answer = alice.get(ADDRESS)

    assert (answer.status_code, answer["Location"]) == (302, f"{ADDRESS}?cluster={CLUSTER}")


def test_all_are_forgotten_once_that_was_shown(alice: Client) -> None:
    source()

    preview = send(alice, 900, do="reset")
    assert "Forget them all" in text_of(preview)
    assert models.SourceOffset.objects.count() == 1
    assert applied(alice, preview).status_code == 302
    assert models.SourceOffset.objects.count() == 0


def test_a_preview_says_how_many_places_it_leaves_out(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector_offsets, "MAX_CHANGES", 1)
    source()
    other = {"quickstart": "orders", "task": 1}
    models.SourceOffset.objects.create(
        connector=models.Connector.objects.get(),
        digest=digest_of(other),
        place=other,
        offset={"number": 1},
    )

    preview = text_of(send(alice, 900, do="reset"))

    assert "the first 1 of 2 places" in preview


def test_what_the_connector_does_not_take_changes_nothing(alice: Client) -> None:
    source()

    assert applied(alice, send(alice, -1)).status_code == 409
    assert "Nothing was changed here" in text_of(send(alice, 900))
    for text, said in (("{", "line 1"), ("[]", "not a list"), ('{"offsets": [{}]}', "entry 1")):
        answer = alice.post(ADDRESS, {"cluster": CLUSTER, "offsets": text})
        assert answer.status_code == 400
        assert said in text_of(answer)
    assert models.SourceOffset.objects.get().offset == {"number": 900}


def test_a_connector_that_runs_keeps_its_offsets(alice: Client) -> None:
    source("STARTED")

    answer = send(alice, 1)

    assert answer.status_code == 409
    assert "Stop the connector first" in text_of(answer)
    assert "stop the connector to alter" in text_of(alice.get(TAB))


def test_a_sink_leads_to_its_group_and_to_its_dead_letters(alice: Client) -> None:
    config = {"errors.deadletterqueue.topic.name": "dead.letters", "topics": "orders"}
    row = rows.connector(CLUSTER, "a", kind="sink", config=config)
    rows.task(row, figures={"dead_letters": 3})

    page = text_of(alice.get(TAB))

    assert "/group/reset?name=connect-a" in page
    assert f"/topics/dead.letters/messages?cluster={CLUSTER}" in page
    assert '<span class="st warn">3</span>' in page
    assert send(alice, 1).status_code == 409


def test_who_may_not_alter_changes_no_offsets(victor: Client) -> None:
    source()

    assert send(victor, 1).status_code == 403
    assert "Alter or reset" not in text_of(victor.get(TAB))
