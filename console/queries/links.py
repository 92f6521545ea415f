"""Addresses of the console's pages, as queries put them into their values."""

from urllib.parse import urlencode

from django.urls import reverse


def link(page: str, cluster_id: str, *arguments: str | int, **asked: str) -> str:
    """Return the address of a page, about a cluster where there is one."""
    path = reverse(f"console:{page}", args=arguments)
    named = {**asked, **({"cluster": cluster_id} if cluster_id else {})}
    return f"{path}?{urlencode(named)}" if named else path
