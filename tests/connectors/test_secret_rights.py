"""Who may have a config refer to which secrets."""

import pytest

from connectors import changes, drafts, selectors, services
from connectors.changes import By
from connectors.refusals import Invalid
from connectors.secret_rights import names_in
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import FULL_ADMIN, Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from tests.connectors.invented import Lines

pytestmark = pytest.mark.usefixtures("database")
C = "cluster-of-the-tests-0"
PLAIN = {"connector.class": "Lines", "topic": "t", "connection.url": "db:5432"}
WITH_SECRET = PLAIN | {"connection.password": "${secret:shop}"}


def by(name: str, *grants: Grant) -> By:
    return By(caller=Caller(kind=CallerKind.USER, name=name, rights=Rights(grants)))


def using(pattern: str) -> Grant:
    return Grant(operation=Operation.USE_SECRETS, kind=Kind.SECRET, pattern=pattern)


ANN = by("ann", FULL_ADMIN)
OLGA = by("olga", Grant(role=Role.OPERATOR))


def refusal(author: By, config: dict[str, str], name: str = "a") -> str:
    with pytest.raises(Invalid) as found:
        services.put_config(author, C, name, config)
    return str(found.value)


def test_an_operator_refers_to_no_secret_without_a_right_on_it() -> None:
    assert (
        "Invalid value for configuration connection.password: you may not use secret shop, and"
        " this value names it: have an admin give you that right on the Users page, or name another"
        " one"
    ) in refusal(OLGA, WITH_SECRET)

    trusted = by("olga", Grant(role=Role.OPERATOR), using("shop*"))
    assert services.create(trusted, C, "a", WITH_SECRET).name == "a"


@pytest.mark.parametrize(
    ("pattern", "reference", "is_allowed"),
    [
        ("shop", "${secret:shop}", True),
        ("shop", "${secret:shop2}", False),
        ("shop", "jdbc:${secret:shop}@${secret:other}", False),
        ("*", "${secret:other}", True),
        ("env:SHOP", "${env:SHOP}", True),
        ("SHOP", "${env:SHOP}", False),
        ("file:/secrets/*", "${file:/secrets/db:password}", True),
        ("file:/secrets/db:user", "${file:/secrets/db:password}", False),
    ],
)
def test_a_right_is_for_names_or_how_they_begin(
    pattern: str, reference: str, is_allowed: bool, settings_for_references: None
) -> None:
    author = by("olga", Grant(role=Role.OPERATOR), using(pattern))

    if is_allowed:
        services.create(author, C, "a", PLAIN | {"file": reference})
    else:
        assert "you may not use secret" in refusal(author, PLAIN | {"file": reference})


@pytest.fixture
def settings_for_references(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.conf import settings  # noqa: PLC0415 - once it is set up

    monkeypatch.setattr(settings, "SAMSA_CONNECT_SECRET_DIRS", ("/secrets",))
    monkeypatch.setattr(settings, "SAMSA_CONNECT_ENV_NAMES", ("SHOP",))


def test_what_somebody_else_has_put_in_stays_while_the_rest_changes() -> None:
    services.create(ANN, C, "a", WITH_SECRET)

    info = services.patch_config(OLGA, C, "a", {"batch.size": "5"})

    assert info.config["connection.password"] == "${secret:shop}"
    services.restart(OLGA, C, "a", include_tasks=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"connection.url": "evil:5432"}, "connection.url changes, which could send it elsewhere"),
        ({"connection.password": "${secret:bank}"}, "secret bank, and this value names it"),
        ({"connection.password": "x${secret:shop}"}, "secret shop, and this value names it"),
        ({"file": "${secret:shop}"}, "secret shop, and this value names it"),
    ],
)
def test_a_secret_of_somebody_else_is_led_nowhere_else(change: dict[str, str], words: str) -> None:
    services.create(ANN, C, "a", WITH_SECRET)

    assert words in refusal(OLGA, WITH_SECRET | change)
    with pytest.raises(Invalid, match="you may not use secret"):
        services.patch_config(OLGA, C, "a", change)


def test_a_secret_in_what_is_no_password_may_end_in_a_record() -> None:
    config = PLAIN | {"file": "/data/${secret:customer}"}
    services.create(ANN, C, "a", config)

    assert "topic changes, which could send it elsewhere" in refusal(OLGA, config | {"topic": "u"})
    assert services.patch_config(OLGA, C, "a", {"tasks.max": "1"}).generation == 2


def test_a_part_of_a_password_that_is_stored_needs_no_right_again() -> None:
    shown = services.create(ANN, C, "a", PLAIN | {"connection.password": "x${secret:shop}"}).config

    assert shown["connection.password"] == "[hidden]"
    services.put_config(OLGA, C, "a", {**shown, "batch.size": "5"})
    assert selectors.opened(selectors.row_of(C, "a"))["connection.password"] == "x${secret:shop}"


def test_a_form_and_a_look_tell_it_at_the_key() -> None:
    judged = selectors.validate(OLGA.caller, C, Lines, WITH_SECRET | {"name": "a"})
    draft = drafts.look(OLGA.caller, C, WITH_SECRET | {"name": "a"}, plugin="Lines")

    wrong = {entry.key.name: entry.value.errors for entry in judged.entries if entry.value.errors}
    assert list(wrong) == ["connection.password"]
    fields = {field.name: field.errors for field in draft.fields if field.errors}
    assert fields == wrong


def test_secrets_that_a_config_begins_to_use_are_told() -> None:
    services.create(ANN, C, "a", WITH_SECRET)
    services.patch_config(ANN, C, "a", {"file": "${secret:other}"})
    services.patch_config(ANN, C, "a", {"batch.size": "5"})

    told = [change.after.get("secrets used") for change in changes.waiting()]
    assert told == ["shop", "other", None]


def test_a_refusal_is_told_with_its_author_and_keys(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        refusal(OLGA, WITH_SECRET)

    [line] = [one.message for one in caplog.records if "secret_refused" in one.message]
    assert line == (
        'connector.secret_refused actor="User:olga" address="" subject="a"'
        ' keys="connection.password"'
    )


def test_names_are_those_of_all_references() -> None:
    config = {"x": "${secret:a}-${env:B}", "y": "${file:/c/d:e}", "z": "${other:f}"}

    assert names_in(config) == ("a", "env:B", "file:/c/d:e")
