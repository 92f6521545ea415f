"""Lets templates test rights, as `{% if may.manage_users %}`, so that no link leads to a refusal.

A page only hides what its user may not do; `middleware` refuses it.
"""

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from gateway.access import sessions
from gateway.access.operations import Operation
from gateway.access.selectors import rights_of


class May:
    """Looks up an operation by its name with underscores; asks the database when first used."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    def __getitem__(self, name: str) -> bool:
        return rights_of(self._request).allows_somewhere(Operation(name.replace("_", "-")))


def may(request: HttpRequest) -> dict[str, May]:
    return {"may": May(request)}


def session(request: HttpRequest) -> dict[str, object]:
    """Give every template `session_s`, the seconds left to the session of a signed-in user."""
    return {"session_s": SimpleLazyObject(lambda: int(sessions.left_s(request)))}
