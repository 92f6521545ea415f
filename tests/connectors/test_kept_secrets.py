"""Secrets within values: shown as masks, kept where the mask comes back, sent nowhere else."""

import json

import pytest

from connectors import changes, drafts, models, selectors, services
from connectors.changes import By
from connectors.plugins.http.connector import HttpSink
from connectors.refusals import Invalid
from connectors.tasks import configs
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import FULL_ADMIN, Rights

pytestmark = pytest.mark.usefixtures("database")
C = "cluster-of-the-tests-0"
ANN = By(caller=Caller(kind=CallerKind.USER, name="ann", rights=Rights([FULL_ADMIN])))
CONFIG = {
    "connector.class": "samsa.http.sink",
    "topics": "t",
    "http.url": "https://example.org/in?token=s3cret1",
    "http.headers.additional": "X-Api-Key:s3cret2,Accept:text/plain",
}
SHOWN = {
    "http.url": "https://example.org/in?token=[hidden]",
    "http.headers.additional": "X-Api-Key:[hidden],Accept:[hidden]",
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks the other side."""
    monkeypatch.setattr(HttpSink, "validate", lambda _self, _parsed: ())


def row() -> models.Connector:
    return models.Connector.objects.get(name="a")


def refusal(config: dict[str, str]) -> str:
    with pytest.raises(Invalid) as found:
        services.put_config(ANN, C, "a", config)
    return str(found.value)


def test_what_is_shown_has_masks_and_what_is_stored_no_secret() -> None:
    info = services.create(ANN, C, "a", CONFIG)

    assert info.config == {**CONFIG, **SHOWN, "name": "a"}
    told = [change.after for change in changes.waiting()]
    assert "s3cret" not in json.dumps([row().config, row().claims, told])
    assert selectors.opened(row()) == {**CONFIG, "name": "a"}


def test_a_config_that_comes_back_with_its_masks_keeps_what_is_stored() -> None:
    shown = dict(services.create(ANN, C, "a", CONFIG).config)

    services.put_config(ANN, C, "a", {**shown, "max.retries": "3"})
    info = services.patch_config(ANN, C, "a", {"max.retries": "4"})

    assert info.config == {**shown, "max.retries": "4"}
    assert selectors.opened(row())["http.url"] == CONFIG["http.url"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"http.url": "https://evil.org/in?token=[hidden]"}, "give the part itself"),
        ({"http.url": "https://evil.org/in"}, "http.url changes, and the stored password goes"),
        ({"http.headers.additional": "X-Other:[hidden]"}, "give the part itself"),
        ({"headers": "X:[hidden]"}, "give the part itself"),
    ],
)
def test_a_mask_stands_for_nothing_where_the_rest_changes(
    change: dict[str, str], words: str
) -> None:
    shown = dict(services.create(ANN, C, "a", CONFIG).config)

    said = refusal({**shown, **change})

    assert words in said
    assert "s3cret" not in said


def test_no_other_key_brings_a_stored_part_to_light() -> None:
    given = {**CONFIG, "headers": "X-Api-Key:s3cret3|B:2"}
    shown = dict(services.create(ANN, C, "a", given).config)
    assert shown["headers"] == "X-Api-Key:[hidden]|B:[hidden]"

    other = {**shown, "header.separator": ":"}
    judged = selectors.validate(ANN.caller, C, HttpSink, other, stored_of="a")

    assert "another key changes which parts of headers are secret:" in refusal(other)
    assert "s3cret" not in str(judged)


def test_another_secret_is_told_and_not_shown() -> None:
    services.create(ANN, C, "a", CONFIG)

    services.patch_config(ANN, C, "a", {"http.url": "https://example.org/in?token=n3w"})

    told = changes.waiting()[-1].after
    assert told == {"http.url": "https://example.org/in?token=[hidden], another one"}


def test_no_error_repeats_a_secret_within_a_value() -> None:
    said = refusal({**CONFIG, "http.url": "https://ann:s3cret9@example.org/"})
    assert "http.url" in said
    assert "s3cret9" not in said

    services.create(ANN, C, "a", CONFIG)
    said = refusal({**row_config(), "http.headers.additional": "no name:s3cret8"})
    assert "s3cret" not in said


def row_config() -> dict[str, str]:
    return dict(selectors.connector(C, "a").config)


def test_a_task_knows_which_parts_no_trace_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configs, "_vault", selectors.vault)
    services.create(ANN, C, "a", CONFIG)

    clear = configs.clear(
        plugin="samsa.http.sink", stored=row().config, own={}, cluster=C, name="a"
    )

    assert clear.config["http.url"] == CONFIG["http.url"]
    assert {"s3cret1", "s3cret2"} <= set(clear.secrets)
    assert not any("example.org" in secret for secret in clear.secrets)


def test_a_form_shows_masks_and_gets_back_what_was_typed() -> None:
    draft = drafts.look(ANN.caller, C, {**CONFIG, "name": "b"}, plugin="samsa.http.sink")
    fields = {field.name: field.value for field in draft.fields}
    sealed = drafts.seal(C, "ann", CONFIG, draft.hidden)

    assert {key: fields[key] for key in SHOWN} == SHOWN
    assert "s3cret" not in sealed
    held = drafts.unseal(C, "ann", sealed)
    assert held == CONFIG
    assert {key: drafts.shown_of(held[key]) for key in SHOWN} == SHOWN


def test_a_stored_url_of_an_older_release_is_masked_and_kept() -> None:
    services.create(ANN, C, "a", CONFIG)
    models.Connector.objects.update(config={**CONFIG, "name": "a"})

    shown = row_config()
    services.put_config(ANN, C, "a", {**shown, "max.retries": "3"})

    assert shown["http.url"] == SHOWN["http.url"]
    assert selectors.opened(row())["http.url"] == CONFIG["http.url"]
    assert "s3cret" not in json.dumps(row().config)
