"""How users, rights and sessions are put into words."""

import pytest

from console.queries.users import Asking, browser_of, user_page, users
from gateway.access.grants import FULL_ADMIN, Rights
from gateway.access.operations import Kind, Operation, Role
from tests.builders import users as builders

ASKING = Asking(rights=Rights([FULL_ADMIN]), name="alice")
LINUX = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        (f"{LINUX}Chrome/140.0 Safari/537.36", "Chrome on Linux"),
        (f"{LINUX}Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Linux"),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Firefox/140.0",
            "Firefox on macOS",
        ),
        ("Mozilla/5.0 (Linux; Android 16) Chrome/140.0", "Chrome on Android"),
        ("curl/8.5.0", "curl"),
        ("some-program/1.0 " + "x" * 300, "some-program"),
        ("", "unknown"),
    ],
)
def test_a_browser_is_two_words(agent: str, shown: str) -> None:
    assert browser_of(agent) == shown


def test_rights_beyond_a_few_are_a_number() -> None:
    bob = builders.user("bob", role=Role.VIEWER)
    for name in ("a", "b", "c"):
        builders.grant(bob, Operation.EXPORT, kind=Kind.TOPIC, pattern=name)

    data = users(ASKING, "bo").data

    assert data is not None
    [row] = data.rows
    assert row.rights == ("viewer", "export: topics a", "export: topics b")
    assert row.more_rights == 1
    assert (len(data.rows), data.total) == (1, 1)


def test_a_form_offers_every_role_operation_and_kind_with_a_sentence() -> None:
    data = user_page(ASKING, None).data

    assert data is not None
    assert [choice.label for choice in data.roles] == [role.value for role in Role]
    assert len(data.operations) == len(Operation)
    assert all(choice.sentence for choice in [*data.roles, *data.operations])
    assert len(data.kinds) == len(Kind) + 1
