"""What a call shows of who makes it."""

import base64

import pytest

from gateway.access import token_text
from gateway.rest.codes import ApiError, Code
from gateway.rest.credentials import Asked, Password, Token, refuse_in_address, shown_in

TEXT = token_text.new(bytes(32))


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def test_a_token_is_known_by_its_digest_however_it_is_shown() -> None:
    known = Token(digest=token_text.digest(TEXT))

    assert shown_in(f"Bearer {TEXT}") == known
    assert shown_in(f"bearer  {TEXT} ") == known
    assert shown_in(basic("token", TEXT)) == known


def test_a_password_may_have_colons_and_any_letters() -> None:
    assert shown_in(basic("ölga", "a:b:ü")) == Password(user="ölga", password="a:b:ü")  # noqa: S106


def test_a_password_is_in_no_text_of_what_was_shown() -> None:
    assert "secret-word" not in repr(shown_in(basic("olga", "secret-word")))


def test_no_header_shows_nothing() -> None:
    assert shown_in("") is None


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("Bearer", "begins with samsa_"),
        (f"Bearer {TEXT[:-1]}", "copy all of it"),
        (f"Bearer {TEXT[:-1]}B", "mistyped"),
        ("Basic !", "base64"),
        ("Basic " + base64.b64encode(b"\xff:\xff").decode(), "UTF-8"),
        ("Basic " + base64.b64encode(b"olga").decode(), "no colon"),
        (basic("a\0b", "x"), "no user"),
        (basic("x" * 151, "x"), "no user"),
        (basic("token", TEXT[:-1]), "copy all of it"),
        ("Digest x", "no scheme of Authorization"),
        ("Bearer " + "x" * 9_000, "characters; at most 8192 fit"),
    ],
)
def test_what_shows_nobody_says_why(header: str, said: str) -> None:
    with pytest.raises(ApiError, match=said) as caught:
        shown_in(header)

    assert caught.value.code is Code.NOT_AUTHENTICATED


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/topics", f"access_token={TEXT}"),
        ("/topics", f"x={TEXT.replace('_', '%5F')}"),
        (f"/topics/{TEXT}", ""),
    ],
)
def test_a_token_in_an_address_is_refused_and_not_repeated(path: str, query: str) -> None:
    with pytest.raises(ApiError, match="the address contains a token") as caught:
        refuse_in_address(Asked(method="GET", headers={}, path=path, query=query.encode()))

    assert TEXT not in caught.value.message


def test_other_addresses_pass() -> None:
    refuse_in_address(Asked(method="GET", headers={}, path="/topics/東/a%ff", query=b"x=%ff&y=%"))
