"""Changes of users and rights: what they do, what they refuse, and what they tell."""

import logging

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gateway.access import audit, first_user, models, selectors, services
from gateway.access.audit import Actor
from gateway.access.grants import ANY, FULL_ADMIN, Grant
from gateway.access.operations import Kind, Operation, Role
from gateway.access.services import MAX_GRANTS, Refused
from gateway.access.sessions import SessionStore
from tests.builders import users

pytestmark = pytest.mark.usefixtures("database")

ALICE = Actor(name="alice", address="10.0.0.1")
VIEWER = Grant(role=Role.VIEWER)


@pytest.fixture
def alice() -> User:
    return users.user("alice")


@pytest.fixture
def bob() -> User:
    return users.user("bob", role=Role.VIEWER)


def sign_in(user: User) -> str:
    store = SessionStore()
    store["_auth_user_id"] = str(user.pk)
    store.save()
    assert store.session_key
    return store.session_key


def has_session(key: str) -> bool:
    return SessionStore().exists(key)


def test_a_new_user_has_what_was_picked_and_must_change_the_password(alice: User) -> None:
    password = services.create_user(actor=ALICE, name="carol", grant=VIEWER)

    carol = User.objects.get(username="carol")
    assert carol.check_password(password)
    assert len(password) == 24
    assert selectors.must_change_password(carol.pk)
    assert selectors.rights_of_user(carol.pk).grants == (VIEWER,)
    assert not carol.is_superuser


@pytest.mark.parametrize(
    ("name", "password", "grant", "said"),
    [
        ("alice", None, VIEWER, "there is a user “alice” already"),
        ("a b", None, VIEWER, "valid username"),
        ("carol", "short", VIEWER, "at least 12 characters"),
        ("carol-of-sales", "carol-of-sales", VIEWER, "similar to the username"),
        ("carol", None, Grant(role=Role.VIEWER, cluster="x*"), "is not a cluster"),
    ],
)
def test_a_user_that_cannot_be_is_refused_whole(
    alice: User, name: str, password: str | None, grant: Grant, said: str
) -> None:
    with pytest.raises(Refused, match=said):
        services.create_user(actor=ALICE, name=name, grant=grant, password=password)

    assert User.objects.count() == 1


def test_a_name_is_kept_as_the_sign_in_form_reads_it(alice: User) -> None:
    services.create_user(actor=ALICE, name="ｃａｒｏｌ", grant=VIEWER)  # noqa: RUF001

    assert User.objects.filter(username="carol").exists()


def test_rights_come_and_go_and_end_the_sessions_that_they_began_in(alice: User, bob: User) -> None:
    added = Grant(operation=Operation.EXPORT, kind=Kind.TOPIC, pattern="orders.*")
    first = sign_in(bob)

    services.add_grant(actor=ALICE, number=bob.pk, grant=added)
    second = sign_in(bob)
    held = selectors.rights_of_user(bob.pk).grants
    row = models.Grant.objects.get(user=bob, operation="export")
    services.remove_grant(actor=ALICE, number=bob.pk, grant=row.pk)

    assert held == (VIEWER, added)
    assert selectors.rights_of_user(bob.pk).grants == (VIEWER,)
    assert not has_session(first)
    assert not has_session(second)


def test_a_right_is_given_once_and_there_is_a_most(alice: User, bob: User) -> None:
    with pytest.raises(Refused, match="has this right already"):
        services.add_grant(actor=ALICE, number=bob.pk, grant=VIEWER)

    models.Grant.objects.bulk_create(
        models.Grant(user=bob, operation="export", kind="topic", pattern=f"t{n}")
        for n in range(MAX_GRANTS - 1)
    )
    with pytest.raises(Refused, match="has 100 rights, the maximum"):
        services.add_grant(actor=ALICE, number=bob.pk, grant=Grant(role=Role.OPERATOR))


def test_nobody_locks_themselves_out(alice: User) -> None:
    users.user("adam")
    own = models.Grant.objects.get(user=alice)

    with pytest.raises(Refused, match="cannot disable your own account"):
        services.set_enabled(actor=ALICE, number=alice.pk, is_enabled=False)
    with pytest.raises(Refused, match="cannot delete your own account"):
        services.delete_user(actor=ALICE, number=alice.pk)
    with pytest.raises(Refused, match="cannot take the role of admin from yourself"):
        services.remove_grant(actor=ALICE, number=alice.pk, grant=own.pk)
    with pytest.raises(Refused, match="on the page of your account"):
        services.reset_password(actor=ALICE, number=alice.pk)


def test_the_last_admin_stays_whoever_asks(alice: User, caplog: pytest.LogCaptureFixture) -> None:
    # Who manages users without being an admin, and so is nobody's replacement.
    mara = users.user("mara", role=None)
    users.grant(mara, Operation.MANAGE_USERS)
    asking = Actor(name="mara")
    own = models.Grant.objects.get(user=alice)
    disabled = users.user("adam")
    User.objects.filter(pk=disabled.pk).update(is_active=False)

    with caplog.at_level(logging.INFO):
        for change in (
            lambda: services.set_enabled(actor=asking, number=alice.pk, is_enabled=False),
            lambda: services.delete_user(actor=asking, number=alice.pk),
            lambda: services.remove_grant(actor=asking, number=alice.pk, grant=own.pk),
        ):
            with pytest.raises(Refused, match="alice is the last admin"):
                change()

    alice.refresh_from_db()
    assert alice.is_active
    assert selectors.rights_of_user(alice.pk).grants == (FULL_ADMIN,)
    # What was taken back is not told as if it had happened.
    assert caplog.messages == []


def test_an_admin_of_one_cluster_is_not_the_last_admin_of_the_console(alice: User) -> None:
    adam = users.user("adam", role=None)
    models.Grant.objects.create(user=adam, role="admin", cluster="0hUvQ2rWSx6lJ3u8T6kRrg")

    assert selectors.admins() == ["alice"]


def test_a_disabled_user_is_out_at_once_and_comes_back_with_everything(
    alice: User, bob: User
) -> None:
    key = sign_in(bob)

    services.set_enabled(actor=ALICE, number=bob.pk, is_enabled=False)
    summary = selectors.user(bob.pk)
    services.set_enabled(actor=ALICE, number=bob.pk, is_enabled=True)

    assert not has_session(key)
    assert summary is not None
    assert not summary.is_enabled
    bob.refresh_from_db()
    assert bob.is_active
    assert selectors.rights_of_user(bob.pk).grants == (VIEWER,)


def test_a_reset_password_ends_sessions_and_must_be_changed(alice: User, bob: User) -> None:
    key = sign_in(bob)

    password = services.reset_password(actor=ALICE, number=bob.pk)

    bob.refresh_from_db()
    assert bob.check_password(password)
    assert selectors.must_change_password(bob.pk)
    assert not has_session(key)


def test_sessions_end_everywhere_but_in_the_one_that_asks(bob: User) -> None:
    kept, ended = sign_in(bob), sign_in(bob)

    count = services.end_sessions(actor=Actor(name="bob"), number=bob.pk, but=kept)

    assert (count, has_session(kept), has_session(ended)) == (1, True, False)


def test_sessions_that_did_not_end_are_no_change(
    bob: User, caplog: pytest.LogCaptureFixture
) -> None:
    kept = sign_in(bob)

    with caplog.at_level(logging.INFO, logger="gateway.access.audit"):
        for _ in range(3):
            services.end_sessions(actor=Actor(name="bob"), number=bob.pk, but=kept)

    assert caplog.messages == []


def test_a_deleted_user_leaves_nothing_behind(alice: User, bob: User) -> None:
    key = sign_in(bob)

    services.delete_user(actor=ALICE, number=bob.pk)

    assert not has_session(key)
    assert not models.Grant.objects.filter(user_id=bob.pk).exists()
    with pytest.raises(Refused, match="no longer exists"):
        services.delete_user(actor=ALICE, number=bob.pk)


def test_every_change_is_told_with_actor_and_address_and_without_a_password(
    alice: User, bob: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="gateway.access.audit"):
        made = services.create_user(actor=ALICE, name="carol", grant=VIEWER)
        reset = services.reset_password(actor=ALICE, number=bob.pk)
        services.add_grant(actor=ALICE, number=bob.pk, grant=Grant(role=Role.OPERATOR))
        sign_in(bob)
        services.end_sessions(actor=ALICE, number=bob.pk)
        services.set_enabled(actor=ALICE, number=bob.pk, is_enabled=False)
        services.delete_user(actor=ALICE, number=bob.pk)

    told = [message.split(" ", 1)[0] for message in caplog.messages]
    assert told == [
        "user.created",
        "user.password_reset",
        "user.granted",
        "user.sessions_ended",
        "user.disabled",
        "user.deleted",
    ]
    assert all('actor="alice" address="10.0.0.1"' in message for message in caplog.messages)
    assert 'subject="bob" grant="operator on all clusters"' in caplog.text
    assert made not in caplog.text
    assert reset not in caplog.text


def test_a_name_cannot_forge_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        audit.record("user.tested", actor=ALICE, subject='bob"\nuser.deleted actor="eve')

    [message] = caplog.messages
    assert "\n" not in message
    assert 'subject="bob\\"\\nuser.deleted actor=\\"eve"' in message


def test_a_right_of_a_newer_release_allows_nothing_and_breaks_nothing(bob: User) -> None:
    models.Grant.objects.create(user=bob, operation="fly", cluster=ANY)

    assert selectors.rights_of_user(bob.pk).grants == (VIEWER,)


def test_the_list_of_users_takes_three_queries_however_long_it_is(alice: User) -> None:
    for number in range(20):
        sign_in(users.user(f"user-{number}", role=Role.VIEWER))

    with CaptureQueriesContext(connection) as captured:
        found = selectors.users()

    assert len(captured) == 3
    assert [user.sessions for user in found] == [0, *[1] * 20]


def test_a_changed_first_password_takes_its_file_with_it() -> None:
    first_user.ensure()
    admin = User.objects.get()
    was_there = first_user.has_file()

    services.change_own_password(admin, actor=Actor(name="admin"), password="of my own choice")  # noqa: S106

    assert was_there
    assert not first_user.has_file()
    assert not selectors.must_change_password(admin.pk)
