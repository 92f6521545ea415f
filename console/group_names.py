"""Names of groups, which are any text at all: how a page writes and addresses them.

An address carries a name in its query. In a path, `..` would lead elsewhere, in whatever encoding,
and a name with a slash could be taken for the page behind it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

NOTHING: Final[Mapping[str, str | int]] = MappingProxyType({})


def shown(name: str) -> str:
    """Return a name in which everything can be seen: no control, and no change of direction."""
    if not name:
        return "(the empty name)"
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in name)


def link(
    cluster_id: str, name: str, page: str = "group", *, more: Mapping[str, str | int] = NOTHING
) -> str:
    """Return the address of a group's page, or of another page about it."""
    asked = {"name": name, **more, "cluster": cluster_id}
    return f"{reverse(f'console:{page}')}?{urlencode(asked)}"
