"""Authors of configs need rights on the files that these name."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connections

from connectors import drafts, registry, services
from connectors.authors import Known
from connectors.changes import By
from connectors.database import CONNECT
from connectors.models import Connector
from connectors.needed_rights import Need, needs
from connectors.refusals import Refused
from gateway.access import selectors
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from tests.builders import users

pytestmark = pytest.mark.usefixtures("database", "files")
C = "cluster-of-the-tests-0"
READ, WRITE = Operation.READ_FILES, Operation.WRITE_FILES
SOURCE = {"connector.class": "samsa.file.source", "file": "archive/secret.txt", "topic": "a.out"}
SINK = {"connector.class": "samsa.file.sink", "file": "archive/secret.txt", "topics": "a.in"}
TABLE = {"connector.class": "samsa.spark.sink", "table.path": "lake/orders", "topics": "a.in"}
QUERY = {
    "connector.class": "samsa.spark.sql",
    "query": "SELECT id FROM a_in",
    "views": "a_in=a.in",
    "view.schemas": "a_in: id BIGINT",
    "tables": "customers=lake/customers,countries=./lake//countries/",
    "table.path": "lake/joined",
    "topics": "a.in",
}


def by(*grants: Grant) -> By:
    return By(caller=Caller(kind=CallerKind.USER, name="tenant", rights=Rights(grants)))


def files_right(operation: Operation, pattern: str) -> Grant:
    return Grant(operation=operation, kind=Kind.FILE, pattern=pattern)


PATHS = ("file", "table.path", "tables")
TENANT = (
    Grant(role=Role.OPERATOR, kind=Kind.TOPIC, pattern="a.*"),
    Grant(role=Role.OPERATOR, kind=Kind.CONNECTOR, pattern="a-*"),
    Grant(role=Role.OPERATOR, kind=Kind.GROUP, pattern="a-*"),
)
ADMIN = by(Grant(role=Role.ADMIN))


def on_files(config: dict[str, str]) -> list[tuple[Operation, str]]:
    plugin = registry.plugins()[config["connector.class"]]
    return [(n.operation, n.pattern) for n in needs(plugin, config) if n.kind is Kind.FILE]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (SOURCE, [(READ, "archive/secret.txt")]),
        (SINK, [(WRITE, "archive/secret.txt")]),
        (SINK | {"file": " ./archive//secret.txt "}, [(WRITE, "archive/secret.txt")]),
        (SOURCE | {"file": "${env:FILE}"}, [(READ, "*")]),
        (SOURCE | {"file": "../secrets/x"}, []),
        (TABLE, [(WRITE, "lake/orders/*")]),
        (
            QUERY,
            [(READ, "lake/customers/*"), (READ, "lake/countries/*"), (WRITE, "lake/joined/*")],
        ),
        (QUERY | {"table.path": "", "output.topic": "a.out", "tables": ""}, []),
    ],
)
def test_files_of_a_config_are_found_by_their_names(
    config: dict[str, str], expected: list[tuple[Operation, str]]
) -> None:
    assert on_files(config) == expected


@pytest.mark.parametrize("config", [SOURCE, SINK, TABLE, QUERY], ids=lambda c: c["connector.class"])
def test_an_author_without_a_right_on_files_is_refused_by_every_way(config: dict[str, str]) -> None:
    tenant = by(*TENANT)
    lines = {"connector.class": "samsa.datagen", "topic": "a.out"}
    services.create(tenant, C, "a-own", lines)

    with pytest.raises(Refused, match=r"You may not (read|write) (file|all files that)"):
        services.create(tenant, C, "a-thief", config)
    with pytest.raises(Refused):
        services.put_config(tenant, C, "a-thief", config)
    with pytest.raises(Refused):
        services.put_config(tenant, C, "a-own", config)
    with pytest.raises(Refused):
        services.patch_config(tenant, C, "a-own", config | {"topic": None})
    with pytest.raises(Refused):
        services.edit_config(tenant, C, "a-own", config, generation=1)
    draft = drafts.look(
        tenant.caller, C, config | {"name": "a-thief"}, plugin=config["connector.class"]
    )
    errors = [error for field in draft.fields for error in field.errors if field.name in PATHS]
    assert errors
    assert not [error for error in errors if not error.startswith("You may not ")]


def test_a_right_on_a_file_is_for_its_operation_and_its_names() -> None:
    allowed = by(*TENANT, files_right(READ, "archive/*"))

    services.create(allowed, C, "a-reader", SOURCE)

    with pytest.raises(Refused, match=r"You may not write file archive/secret\.txt"):
        services.create(allowed, C, "a-writer", SINK)
    with pytest.raises(Refused, match="You may not read file other/x"):
        services.create(allowed, C, "a-other", SOURCE | {"file": "other/x"})


def test_a_folder_needs_a_right_on_all_that_is_in_it() -> None:
    plugin = registry.plugins()["samsa.spark.sink"]
    [need] = [n for n in needs(plugin, TABLE) if n.kind is Kind.FILE]

    assert need == Need(operation=WRITE, pattern="lake/orders/*")
    tenant = by(*TENANT, files_right(WRITE, "lake/orders"))
    with pytest.raises(Refused, match="all files that begin with lake/orders/"):
        services.create(tenant, C, "a-table", TABLE)


def test_a_preview_says_which_files_a_connector_writes() -> None:
    draft = drafts.look(ADMIN.caller, C, SINK | {"name": "a"}, plugin="samsa.file.sink")

    assert [(lead.verb, lead.kind, lead.pattern) for lead in draft.leads] == [
        ("read", "topic", "a.in"),
        ("write", "file", "archive/secret.txt"),
    ]


def test_a_connector_ends_when_its_author_loses_the_right_on_a_file() -> None:
    tenant = users.user("tenant", role=Role.OPERATOR)
    number = selectors.number_of("tenant")
    assert number is not None
    rights = selectors.rights_of_user(number)
    caller = Caller(kind=CallerKind.SESSION, name="tenant", rights=rights)
    services.create(By(caller=caller), C, "a-reader", SOURCE)
    assert Known(C).lost(Connector.objects.get().claims) == ""

    tenant.grants.update(kind="topic")

    assert (
        "with the rights of user tenant, which may not read file archive/secret.txt:"
        " give it that right and restart the connector"
    ) in Known(C).lost(Connector.objects.get().claims)


def test_connectors_of_an_older_release_claim_their_files_for_their_author() -> None:
    tenant = users.user("tenant", role=Role.OPERATOR)
    number = selectors.number_of("tenant")
    caller = Caller(kind=CallerKind.SESSION, name="tenant", rights=ADMIN.caller.rights)
    for name, config in {"a-sink": SINK, "a-odd": SINK | {"file": "kept/metadata.txt"}}.items():
        services.create(By(caller=caller), C, name, config)
    for row in Connector.objects.all():
        row.claims = [claim for claim in row.claims or () if claim["operation"] != "write-files"]
        row.save()
    services.create(ADMIN, C, "a-unknown", SOURCE)
    Connector.objects.filter(name="a-unknown").update(claims=None)
    assert number is not None

    migration = import_module("connectors.migrations.0009_claims_on_files")
    migration.claim_files(apps, SimpleNamespace(connection=connections[CONNECT]))

    claims = Connector.objects.get(name="a-sink").claims
    assert claims is not None
    assert {
        "operation": "write-files",
        "pattern": "archive/secret.txt",
        "number": number,
    }.items() <= (claims[-1].items())
    assert Known(C).lost(claims) == ""
    tenant.grants.update(kind="topic")
    assert "may not write file archive/secret.txt" in Known(C).lost(claims)
    assert Connector.objects.get(name="a-unknown").claims is None
