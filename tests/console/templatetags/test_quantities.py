"""Sizes and rates in a template."""

from django.template import Context, Template


def written(text: str, value: float | None) -> str:
    return Template("{% load quantities %}" + text).render(Context({"value": value}))


def test_a_size_tells_its_bytes_in_the_title() -> None:
    assert written("{{ value|size }}", 1536) == '<span title="1,536 bytes">1.5 KiB</span>'


def test_what_is_not_known_says_so() -> None:
    for name in ("size", "rate", "bytes_rate", "count", "scaled"):
        assert "not known" in written("{{ value|" + name + " }}", None)
        assert "not known" in written("{{ value.nothing.there|" + name + " }}", None)
    assert written("{{ value|rate }}", 2.0) == "2/s"
