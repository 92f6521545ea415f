"""The template tags for parts that many pages have: pills, notices, card headers and states."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from console.plans.previews import Cell, Column
from console.templatetags.prose import coded

register = template.Library()
NOTHING = SafeString("")


@register.simple_tag
def pill(mark: str, word: str, meaning: str = "") -> SafeString:
    """Show a state in a word, and its meaning in the title; `mark` is its CSS class."""
    title = format_html(' title="{}"', meaning) if meaning else NOTHING
    return format_html('<span class="st {}"{}>{}</span>', mark, title, word)


@register.simple_tag
def notice(
    mark: str,
    word: str,
    text: str,
    id: str = "",  # noqa: A002 - HTML's name
    *,
    is_answer: bool = False,
) -> SafeString:
    """Show a line with a pill, and code between backticks.

    Screen readers interrupt for an error, and for the answer to what the user has just done.
    """
    role = "alert" if mark == "bad" or is_answer else "status"
    named = format_html(' id="{}"', id) if id else NOTHING
    start = format_html('<p class="notice {}" role="{}"{}>', mark, role, named)
    return format_html("{}{} {}</p>", start, pill(mark, word), coded(text))


@register.simple_tag
def card_header(title: str, note: str = "") -> SafeString:
    faint = format_html('<span class="faint">{}</span>', note) if note else NOTHING
    return format_html("<header><h2>{}</h2>{}</header>", title, faint)


@register.simple_block_tag
def state(
    content: str, mark: str, word: str, title: str = "", *, is_card: bool = False
) -> SafeString:
    """Show why there is nothing to see, and what to do, in a card or as a card of its own."""
    heading = format_html("<h2>{}</h2>", title) if title else NOTHING
    form = '<div class="state">{}{}{}</div>'
    if is_card:
        form = '<section class="card state">{}{}{}</section>'
    # Django has rendered and escaped the content.
    return format_html(form, pill(mark, word), heading, mark_safe(content.strip()))  # noqa: S308


@register.simple_tag
def cell(column: Column, shown: Cell, *, is_head: bool = False) -> SafeString:
    """Show the cell of a table, with a few words behind its text."""
    text = format_html(_form_of(shown), shown.text, address=shown.address)
    more = format_html(' <small class="faint">{}</small>', shown.more) if shown.more else NOTHING
    form = '<th scope="row" class="{}">{}{}</th>' if is_head else '<td class="{}">{}{}</td>'
    return format_html(form, column.css, text, more)


def _form_of(shown: Cell) -> str:
    if shown.address:
        return '<a href="{address}">{}</a>'
    if shown.is_faint:
        return '<span class="faint">{}</span>'
    return "<b>{}</b>" if shown.is_strong else "{}"
