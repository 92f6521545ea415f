"""Addresses of the console's pages, as queries put them into their values."""

from contextlib import suppress
from urllib.parse import urlencode

from django.urls import NoReverseMatch, reverse


def link(page: str, cluster_id: str, *arguments: str | int, **asked: str) -> str:
    """Return the address of a page, about a cluster where there is one.

    Of the overview where the console has no such page.
    """
    path = reverse("console:overview")
    with suppress(NoReverseMatch):
        path = reverse(f"console:{page}", args=arguments)
    named = {**asked, **({"cluster": cluster_id} if cluster_id else {})}
    return f"{path}?{urlencode(named)}" if named else path
