"""Classifies the errors of a Connect server's client. Pure, and without pyspark."""

from enum import Enum
from typing import Final

# Errors for a session that the server does not know any more, since it was idle for too long or the
# server has restarted. The last two are from the client.
SESSION_GONE: Final = (
    *("INVALID_HANDLE.SESSION_", "INVALID_HANDLE.OPERATION_", "NO_ACTIVE_SESSION"),
    *("RESPONSE_ALREADY_RECEIVED", "Received incorrect server side session identifier"),
)
# gRPC's codes for no answer, a late answer, and a closed connection.
AWAY: Final = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED"})
SHUT: Final = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"})


class Fault(Enum):
    # No answer: the server has ended, or cannot be reached.
    AWAY = "away"
    # It answers, but has forgotten the session.
    SESSION = "session"
    # It refuses the token.
    TOKEN = "token"  # noqa: S105 (its name)
    # It works, but the query has failed.
    QUERY = "query"


def fault_of(error: BaseException) -> Fault:
    said = str(error)
    if any(word in said for word in SESSION_GONE):
        return Fault.SESSION
    code = code_of(error)
    if code in SHUT:
        return Fault.TOKEN
    return Fault.AWAY if code in AWAY else Fault.QUERY


def code_of(error: BaseException) -> str:
    """Return the name of gRPC's code; empty if an error has none."""
    # The methods of pyspark's errors and of gRPC's.
    for name in ("getGrpcStatusCode", "code"):
        ask = getattr(error, name, None)
        if callable(ask):
            return str(getattr(ask(), "name", ""))
    return ""
