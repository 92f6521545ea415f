"""The template filter for sentences with code between backticks."""

import re
from typing import Final

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

CODE: Final = re.compile(r"`([^`]+)`")


@register.filter
def coded(text: str) -> SafeString:
    """Escape a text, and show the parts between backticks as code."""
    return mark_safe(CODE.sub(r"<code>\1</code>", escape(text)))  # noqa: S308 - escaped first
