"""Builds addresses of the console's pages for the values of queries."""

from urllib.parse import urlencode

from django.urls import reverse


def link(page: str, cluster_id: str, *arguments: str | int, **asked: str) -> str:
    """Return the address of a page, for a cluster if one is given."""
    path = reverse(f"console:{page}", args=arguments)
    named = {**asked, **({"cluster": cluster_id} if cluster_id else {})}
    return f"{path}?{urlencode(named)}" if named else path
