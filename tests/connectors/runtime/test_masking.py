"""Secrets are taken out of texts, however they are written there."""

import base64
import html
import json
import time
from urllib.parse import quote, quote_plus

import pytest

from connectors.runtime import masking
from connectors.runtime.masking import holds, masked

SECRET = "hün/ter 2+\"<&>=\\'x"  # noqa: S105 - made up
DATA = SECRET.encode()


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        repr(SECRET)[1:-1],
        repr(DATA)[2:-1],
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower().replace("h%c3", "h%c3"),
        quote_plus(SECRET),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(SECRET).replace("/", "\\/")[1:-1],
        html.escape(SECRET),
        DATA.hex(),
        DATA.hex().upper(),
        base64.b64encode(DATA).decode(),
        base64.urlsafe_b64encode(DATA).decode().rstrip("="),
    ],
)
def test_a_secret_is_masked_in_each_form(written: str) -> None:
    text = f"the server said {written} to us"

    assert masked(text, [SECRET]).replace("=", "") == "the server said [hidden] to us"
    assert holds(text, [SECRET])


@pytest.mark.parametrize("user", ["", "a", "ab", "abc", "abcd"])
def test_nothing_of_a_password_stays_in_the_base64_of_a_user_with_it(user: str) -> None:
    password = "correct horse battery"  # noqa: S105 - made up
    header = base64.b64encode(f"{user}:{password}".encode()).decode()

    left = masked(f"Authorization: Basic {header}", [password])

    assert "[hidden]" in left
    rest = left.removeprefix("Authorization: Basic ").replace("[hidden]", "")
    # What is left are the characters that hold bits of what stands around it.
    assert len(rest) <= len(header) - 4 * len(password) // 3 + 2


def test_the_longest_of_two_secrets_is_masked_first() -> None:
    assert masked("xxpasswordyy", ["password", "xxpasswordyy"]) == "[hidden]"


def test_each_line_of_a_key_is_masked() -> None:
    key = "-----BEGIN KEY-----\n" + "QUJDREVGR0hJSktMTU5PUA==\n" * 2 + "-----END KEY-----"

    assert "QUJDREVG" not in masked("line 2: QUJDREVGR0hJSktMTU5PUA==, wrong", [key])


def test_short_secrets_and_none_leave_a_text_as_it_is() -> None:
    assert masked("a b c", ["a", "b "]) == "a b c"
    assert masked("abc", []) == "abc"
    assert not holds("a b c", ["a"])


def test_no_part_of_a_secret_is_left_where_a_long_text_is_cut() -> None:
    secret = "s3cr3t-of-some-length"  # noqa: S105 - made up
    cut_in_secret = "x" * (masking.MAX_TEXT_CHARS - 5) + secret + "y"

    left = masked(cut_in_secret, [secret])

    assert "s3cr3" not in left
    assert len(left) <= masking.MAX_TEXT_CHARS


@pytest.mark.alone
def test_long_secrets_and_long_texts_are_masked_within_a_second() -> None:
    secrets = [chr(97 + n) * 200_000 for n in range(3)] + [f"secret-{n}" for n in range(20)]
    began = time.process_time()

    masked("no secret here, " * 1_000_000, secrets)

    assert time.process_time() - began < 1.0
