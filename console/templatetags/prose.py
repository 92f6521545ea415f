"""The filter by which pages write sentences that hold words of a program between backticks."""

import re
from typing import Final

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

CODE: Final = re.compile(r"`([^`]+)`")


@register.filter
def coded(text: str) -> SafeString:
    """Show what stands between backticks as code, and all of it escaped."""
    return mark_safe(CODE.sub(r"<code>\1</code>", escape(text)))  # noqa: S308 - escaped first
