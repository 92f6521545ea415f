"""The command that changes the key of passwords."""

from io import StringIO

import pytest
from django.core.management import call_command

from connectors import selectors, services
from connectors.changes import By
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import FULL_ADMIN, Rights
from tests.connectors.conftest import database

__all__ = ["database"]
pytestmark = pytest.mark.usefixtures("database")
ANN = By(caller=Caller(kind=CallerKind.USER, name="ann", rights=Rights([FULL_ADMIN])))
C = "cluster-of-the-tests-0"


def test_passwords_open_after_a_rotation_and_after_the_former_key_is_gone() -> None:
    config = {"connector.class": "Lines", "topic": "t", "connection.password": "s3cret"}
    services.create(ANN, C, "a", config)
    before = selectors.vault().key_id

    said = StringIO()
    call_command("connect_rotate_key", stdout=said)
    call_command("connect_rotate_key", "--forget", stdout=said)

    selectors.vault.cache_clear()
    row = selectors.row_of(C, "a")
    assert selectors.opened(row)["connection.password"] == "s3cret"
    assert selectors.vault().key_id != before
    assert len(selectors.vault().path.read_text().split()) == 1
    assert said.getvalue().count("1 connectors have passwords") == 2
