"""Words of a program within a sentence are shown as code, and nothing in it is markup."""

from console.templatetags.prose import coded


def test_what_stands_between_backticks_is_code() -> None:
    assert coded("run `./samsa up`, or `down`") == (
        "run <code>./samsa up</code>, or <code>down</code>"
    )


def test_markup_is_escaped_and_a_single_backtick_stays() -> None:
    assert coded("`<b>` & a `") == "<code>&lt;b&gt;</code> &amp; a `"
