"""What of a value is a secret: passwords of URLs, values of headers."""

import pytest

from connectors.sdk.secret_parts import of_pairs, of_urls, secrets, shown


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("https://host/path?a=1&b=2#c", "https://host/path?a=1&b=2#c"),
        ("postgresql://ann:s3cret@db:5432/x", "postgresql://ann:[hidden]@db:5432/x"),
        ("postgresql://ann@db:5432/x", "postgresql://ann@db:5432/x"),
        ("jdbc:postgresql://ann:s3@cret@db/x", "jdbc:postgresql://ann:[hidden]@db/x"),
        ("https://t0ken@host/", "https://[hidden]@host/"),
        ("https://host:8080/a@b", "https://host:8080/a@b"),
        ("https://h/?token=abc&x=1", "https://h/?token=[hidden]&x=1"),
        ("https://h/?x=1&API_KEY=a=b", "https://h/?x=1&API_KEY=[hidden]"),
        ("https://h/#access_token=abc", "https://h/#access_token=[hidden]"),
        (
            "https://h/b?X-Amz-Signature=ab&X-Amz-Date=1",
            "https://h/b?X-Amz-Signature=[hidden]&X-Amz-Date=1",
        ),
        (
            "jdbc:sqlserver://h;user=u;password=p;x=1",
            "jdbc:sqlserver://h;user=u;password=[hidden];x=1",
        ),
        ("https://h/?monkey=1&author=ann", "https://h/?monkey=1&author=ann"),
        ("https://h/?key=${key}&token=${secret:t}", "https://h/?key=${key}&token=${secret:t}"),
        ("https://u:${secret:t}@h/", "https://u:${secret:t}@h/"),
        ("https://u:a${secret:t}@h/", "https://u:[hidden]@h/"),
        ("a://u:p@h,b://u:q@i", "a://u:[hidden]@h,b://u:[hidden]@i"),
        ("see https://u:p@h/ and more", "see https://u:[hidden]@h/ and more"),
        ("password=1", "password=1"),
        ("", ""),
    ],
)
def test_passwords_of_urls_are_masked_and_the_rest_is_not(text: str, seen: str) -> None:
    assert shown(text, of_urls(text)) == seen
    # What is shown has the same parts, so that it is known again when it is sent.
    assert shown(seen, of_urls(seen)) == seen


@pytest.mark.parametrize(
    ("text", "separator", "seen"),
    [
        ("X-Key: abc,Accept:a/b", ",", "X-Key: [hidden],Accept:[hidden]"),
        ("X-Key:a:b", ",", "X-Key:[hidden]"),
        ("A:1|B:2", "|", "A:[hidden]|B:[hidden]"),
        ("A:,B", ",", "A:,B"),
        ("A:${secret:a},B:x${secret:b}", ",", "A:${secret:a},B:[hidden]"),
    ],
)
def test_values_of_headers_are_masked_and_their_names_are_not(
    text: str, separator: str, seen: str
) -> None:
    assert shown(text, of_pairs(text, separator)) == seen


def test_parts_are_told_as_they_stand_and_as_they_are_read() -> None:
    text = "https://u:p%40ss@h/?token=a+b"

    assert list(secrets(text, of_urls(text))) == ["p%40ss", "p@ss", "a+b", "a b"]


def test_a_long_text_is_looked_through_in_no_time() -> None:
    for text in ("a://" * 100_000, "a://" + "@" * 400_000, "?a=" * 130_000 + "://", "x" * 400_000):
        assert shown(text, of_urls(text)) is not None
