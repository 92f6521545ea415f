"""The template filters for sizes, rates and counts."""

from typing import Final

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from brokers.quantities import in_words
from console import quantities
from console.quantities import UNKNOWN

register = template.Library()


# Templates read a field of None as an empty text, which is unknown, too.
Number = float | str | None
NOT_KNOWN: Final = format_html('<span class="faint" title="not known">{}</span>', UNKNOWN)


@register.filter
def size(value: Number) -> SafeString:
    if not isinstance(value, int | float):
        return NOT_KNOWN
    exact = f"{quantities.count(value)} bytes"
    return format_html('<span title="{}">{}</span>', exact, quantities.size(value))


@register.filter
def share(value: Number) -> str:
    return quantities.share(value) if isinstance(value, int | float) else NOT_KNOWN


@register.filter
def bytes_rate(value: Number) -> str:
    return quantities.bytes_rate(value) if isinstance(value, int | float) else NOT_KNOWN


@register.filter
def rate(value: Number) -> str:
    return quantities.rate(value) if isinstance(value, int | float) else NOT_KNOWN


@register.filter
def scaled(value: Number) -> str:
    return quantities.short(value) if isinstance(value, int | float) else NOT_KNOWN


@register.filter
def count(value: Number) -> str:
    return quantities.count(value) if isinstance(value, int | float) else NOT_KNOWN


@register.filter
def config_words(value: str | None, key: str) -> SafeString | str:
    """Return the words of a config's number, to stand behind it; empty for another value."""
    words = in_words(key, value) if isinstance(value, str) else ""
    return format_html(' <small class="faint">{}</small>', words) if words else ""
