"""What an error of a Connect server's client says about the server. Pure, and without pyspark."""

from enum import Enum
from typing import Final

# How a server says that it does not know a session any more: it was idle for too long, or the
# server was started again. The last two are its client's own words.
SESSION_GONE: Final = (
    *("INVALID_HANDLE.SESSION_", "INVALID_HANDLE.OPERATION_", "NO_ACTIVE_SESSION"),
    *("RESPONSE_ALREADY_RECEIVED", "Received incorrect server side session identifier"),
)
# Names of gRPC's codes: nobody answers, an answer takes too long, a connection has ended.
AWAY: Final = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED"})
SHUT: Final = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"})


class Fault(Enum):
    # No answer: it has ended, or cannot be reached.
    AWAY = "away"
    # It answers, and has forgotten the session.
    SESSION = "session"
    # It does not take the token.
    TOKEN = "token"  # noqa: S105 (its name)
    # It works, and what it was asked for has failed.
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
    """Return the name of gRPC's code; empty where an error has none."""
    # As pyspark's errors tell it, and as those of gRPC do.
    for name in ("getGrpcStatusCode", "code"):
        ask = getattr(error, name, None)
        if callable(ask):
            return str(getattr(ask(), "name", ""))
    return ""
