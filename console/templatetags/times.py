"""The template filters for times: a text in the active zone, and the exact moment in its title."""

from datetime import UTC, datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console import times

register = template.Library()


@register.filter
def clock(value: datetime) -> SafeString:
    """Show the time of day."""
    return _element(value, times.clock(value))


@register.filter
def minute(value: datetime) -> SafeString:
    """Show day and time of day."""
    return _element(value, times.minute(value))


@register.filter
def second(value: datetime) -> SafeString:
    """Show day and time of day to the second."""
    return _element(value, times.second(value))


@register.filter
def short(value: datetime) -> SafeString:
    """Show the time of day, or the day if it was not today."""
    return _element(value, times.short(value, timezone.now()))


@register.filter
def ago(value: datetime) -> SafeString:
    """Show how long ago it was; the page's script updates the text."""
    text = times.ago(value, timezone.now())
    return _element(value, text, is_relative=True)


def _element(value: datetime, text: str, *, is_relative: bool = False) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}"{}>{}</time>',
        value.astimezone(UTC).isoformat(timespec="milliseconds"),
        times.title(value),
        " data-ago" if is_relative else "",
        text,
    )
