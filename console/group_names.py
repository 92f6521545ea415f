"""Links to pages of groups, whose names may be any text.

A link has the name in its query. In a path, `..` would point elsewhere in any encoding, and a name
with a slash could be taken for a subpage.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

NOTHING: Final[Mapping[str, str | int]] = MappingProxyType({})


def link(
    cluster_id: str, name: str, page: str = "group", *, more: Mapping[str, str | int] = NOTHING
) -> str:
    """Return the link to a group's page, or to another page about it."""
    asked = {"name": name, **more, "cluster": cluster_id}
    return f"{reverse(f'console:{page}')}?{urlencode(asked)}"
