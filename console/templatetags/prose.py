"""The template filters for sentences with code between backticks, and for names."""

import re
from typing import Final

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from gateway.kafka.shown_names import shown

register = template.Library()

CODE: Final = re.compile(r"`([^`]+)`")


# Characters of a name that would not show, or turn the text around them, are escaped.
register.filter("shown", shown)


@register.filter
def coded(text: str) -> SafeString:
    """Escape a text, and show the parts between backticks as code."""
    return mark_safe(CODE.sub(r"<code>\1</code>", escape(text)))  # noqa: S308 - escaped first
