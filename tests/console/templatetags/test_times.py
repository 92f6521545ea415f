"""A time on a page is an element that a script can read and a pointer can ask."""

from datetime import UTC, datetime
from pathlib import Path

from django.template import Context, Template

from console.templatetags import quantities, times

AT = datetime(2024, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)


def shown(name: str) -> str:
    return Template(f"{{% load times %}}{{{{ at|{name} }}}}").render(Context({"at": AT}))


def test_each_filter_carries_the_exact_moment() -> None:
    start = '<time datetime="2024-02-03T04:05:06.789+00:00" title="2024-02-03 04:05:06 UTC"'

    assert shown("clock") == f"{start}>04:05:06</time>"
    assert shown("minute") == f"{start}>2024-02-03 04:05</time>"
    assert shown("second") == f"{start}>2024-02-03 04:05:06</time>"
    assert shown("short") == f"{start}>2024-02-03</time>"
    assert shown("ago").startswith(f"{start} data-ago>")


def test_no_template_writes_a_time_in_another_way() -> None:
    folder = Path(__file__).resolve().parents[3] / "console" / "templates"
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}

    assert [name for name, text in texts.items() if "|date" in text or "|time:" in text] == []
    assert [name for name, text in texts.items() if ">UTC</small>" in text] == []


def test_no_filter_of_numbers_has_the_name_of_one_of_times() -> None:
    # The library that a template loads last would win, without a word.
    assert set(times.register.filters).isdisjoint(quantities.register.filters)
