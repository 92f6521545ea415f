"""Tokens as texts: what is one, and what only looks like one."""

import random

import pytest

from gateway.access import token_text
from gateway.access.token_text import BadToken
from tests.scale import count


def test_a_new_token_is_one_and_no_two_are_the_same() -> None:
    made = {token_text.new() for _ in range(100)}

    assert len(made) == 100
    for text in made:
        token_text.check(text)
        assert len(text) == token_text.CHARS


def test_every_wrong_character_is_told_from_the_token() -> None:
    text = token_text.new(bytes(range(32)))

    for place in range(len(token_text.PREFIX), len(text)):
        other = "A" if text[place] != "A" else "B"
        with pytest.raises(BadToken, match="mistyped"):
            token_text.check(text[:place] + other + text[place + 1 :])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with samsa_"),
        ("secret", "begins with samsa_"),
        ("samsa_short", "has 11 characters of 54"),
        ("samsa_" + "ä" * 48, "characters that no token has"),
        ("samsa_" + "A" * 47 + "\n", "characters that no token has"),
    ],
)
def test_the_sentence_says_what_is_wrong_and_never_the_text(text: str, said: str) -> None:
    with pytest.raises(BadToken, match=said) as caught:
        token_text.check(text)

    assert not text or text not in str(caught.value)


def test_what_is_shown_of_a_token_leaves_nothing_to_guess() -> None:
    text = token_text.new()

    assert text.startswith(token_text.shown(text))
    assert len(text) - len(token_text.shown(text)) >= 40


def test_a_token_is_found_wherever_it_stands_in_an_address() -> None:
    drawn = random.Random(7)
    for _ in range(count(20, 100)):
        text = token_text.new(drawn.randbytes(32))

        assert token_text.holds_token(f"/topics?access_token={text}&a=b")
        assert not token_text.holds_token(f"/topics/{text[:-1]}")
