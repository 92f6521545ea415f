"""The keys of sessions follow their file, and Django takes them as its own settings."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.core import signing
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings

from brokers.key_files import LOOK_SECONDS, KeyFile, write_keys
from gateway.session_keys import SessionKey, ValidKeys
from tests.fakes.clock import ManualClock


class Web:
    """The settings of one web server that has read a home's file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.clock = ManualClock()
        keys = KeyFile(file, monotonic=self.clock.monotonic)
        self.settings = override_settings(
            SECRET_KEY=SessionKey(keys), SECRET_KEY_FALLBACKS=ValidKeys(keys)
        )

    def rotate(self, *keys: str) -> None:
        write_keys(self.file, keys)
        self.clock.advance(int(1000 * LOOK_SECONDS))


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    web = Web(tmp_path / "session")
    with web.settings:
        yield web


def test_a_session_of_one_web_server_is_valid_on_another(tmp_path: Path) -> None:
    one, two = Web(tmp_path / "one"), Web(tmp_path / "two")
    for web in (one, two):
        web.rotate("1.a")
    with one.settings:
        session = SessionStore()
        session["user"] = "alice"
        session.save()

    with two.settings:
        assert SessionStore(session.session_key)["user"] == "alice"


def test_what_was_signed_stays_valid_through_a_rotation_and_ends_with_the_next(web: Web) -> None:
    web.rotate("1.a")
    signed = signing.dumps("alice")

    for keys in (("1.a", "2.b"), ("2.b", "1.a")):
        web.rotate(*keys)
        assert signing.loads(signed) == "alice"
    web.rotate("3.c", "2.b")

    with pytest.raises(signing.BadSignature):
        signing.loads(signed)


def test_a_web_server_that_has_not_seen_the_rotation_yet_knows_what_another_signs(
    tmp_path: Path,
) -> None:
    ahead, behind = Web(tmp_path / "ahead"), Web(tmp_path / "behind")
    ahead.rotate("2.b", "1.a")
    behind.rotate("1.a", "2.b")
    with ahead.settings:
        signed = signing.dumps("alice")

    with behind.settings:
        assert signing.loads(signed) == "alice"


def test_cookies_are_signed_with_the_key_of_the_moment(web: Web) -> None:
    web.rotate("1.a")
    under_the_first = signing.get_cookie_signer().sign("alice")
    web.rotate("2.b", "1.a")

    assert signing.get_cookie_signer().unsign(under_the_first) == "alice"
    assert signing.get_cookie_signer().sign("alice") != under_the_first


def test_a_missing_file_is_named_with_what_to_do(web: Web) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"session is not there: the agent .*samsa up"):
        signing.dumps("alice")

    web.rotate("1.a")

    assert signing.loads(signing.dumps("alice")) == "alice"


def test_settings_hold_the_key_and_not_a_copy(web: Web) -> None:
    web.rotate("1.a")
    first = str(settings.SECRET_KEY), list(settings.SECRET_KEY_FALLBACKS)

    web.rotate("2.b", "1.a")

    assert first == ("1.a", ["1.a"])
    assert (str(settings.SECRET_KEY), [*settings.SECRET_KEY_FALLBACKS]) == ("2.b", ["2.b", "1.a"])
    assert len(settings.SECRET_KEY_FALLBACKS) == 2
