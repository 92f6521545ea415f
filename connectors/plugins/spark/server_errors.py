"""Classifies errors of a Connect server: whether to retry, and what the user can do."""

import re
from typing import Final

from connectors.plugins.spark.tries import Failed
from connectors.sdk.errors import ConnectorError, RetriableError
from spark_integration.jobs.faults import Fault, fault_of
from spark_integration.jobs.targets import TOKEN_VARIABLE, VARIABLE, Target, shown

# Limits the server's text in a message: gRPC repeats it, with addresses.
MAX_CHARS: Final = 300
# The one line of gRPC's text that is of use to people.
DETAILS: Final = re.compile(r'details = "(.*?)"\n')


def of_server(
    error: Exception, target: Target, *, tries: int, most_tries: int, had_session: bool
) -> ConnectorError | None:
    """Return what to raise for an error about the server; None for any other error."""
    fault, where = fault_of(error), shown(target.url)
    if fault is Fault.QUERY:
        return None
    if fault is Fault.TOKEN:
        return ConnectorError(
            f"the Connect server {where} does not take the token: set {TOKEN_VARIABLE} to the one"
            f" that it was started with, and restart the worker ({_words(error)})"
        )
    if fault is Fault.SESSION:
        return RetriableError(
            f"the Connect server {where} has forgotten the session, since it was started again or"
            " the session was idle for too long: the batch is run again in a new one"
        )
    if not had_session:
        return RetriableError(
            f"the Connect server {where} cannot be reached: start it, or set {VARIABLE} to"
            f" another one ({_words(error)})"
        )
    said = f"the Connect server {where} has ended, or was cut off, in the middle of a batch"
    if tries >= most_tries:
        # The server has other users, who lose their sessions with each try.
        return ConnectorError(
            f"{said}, {tries + 1} times in a row: see its log; where it lacks memory, make"
            " batch.max.records smaller"
        )
    return Failed(f"{said} ({_words(error)})")


def without(text: str, token: str) -> str:
    """Remove the token from a text, since no error and no page may show it."""
    return text.replace(token, "…") if token else text


def holds(text: str, token: str) -> bool:
    return bool(token) and token in text


def _words(error: Exception) -> str:
    said = str(error)
    found = DETAILS.search(said)
    return (found[1] if found else said)[:MAX_CHARS]
