"""Writes names of groups, which may be any text, for pages and links.

A link has the name in its query. In a path, `..` would point elsewhere in any encoding, and a name
with a slash could be taken for a subpage.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

NOTHING: Final[Mapping[str, str | int]] = MappingProxyType({})


def shown(name: str) -> str:
    """Return a name with control characters and changes of text direction escaped."""
    if not name:
        return "(the empty name)"
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in name)


def link(
    cluster_id: str, name: str, page: str = "group", *, more: Mapping[str, str | int] = NOTHING
) -> str:
    """Return the link to a group's page, or to another page about it."""
    asked = {"name": name, **more, "cluster": cluster_id}
    return f"{reverse(f'console:{page}')}?{urlencode(asked)}"
