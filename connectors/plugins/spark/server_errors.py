"""What errors of a Connect server mean for a task: try again, or end, and what to do."""

import re
from typing import Final

from connectors.plugins.spark.tries import Failed
from connectors.sdk.errors import ConnectorError, RetriableError
from spark_integration.jobs.faults import Fault, fault_of
from spark_integration.jobs.targets import TOKEN_VARIABLE, VARIABLE, Target, shown

# Of a server's words, in a message: gRPC tells the same thing twice, with addresses.
MAX_CHARS: Final = 300
# The one line of gRPC's text that people read.
DETAILS: Final = re.compile(r'details = "(.*?)"\n')


def of_server(
    error: Exception, target: Target, *, tries: int, most_tries: int, had_session: bool
) -> ConnectorError | None:
    """Return what to raise for an error that says something of the server; None for another."""
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
        # It serves others, too, who lose their sessions with each try.
        return ConnectorError(
            f"{said}, {tries + 1} times in a row: see its log; where it lacks memory, make"
            " batch.max.records smaller"
        )
    return Failed(f"{said} ({_words(error)})")


def without(text: str, token: str) -> str:
    """Return a text without a token, which no error should hold, and no page may show."""
    return text.replace(token, "…") if token else text


def holds(text: str, token: str) -> bool:
    return bool(token) and token in text


def _words(error: Exception) -> str:
    said = str(error)
    found = DETAILS.search(said)
    return (found[1] if found else said)[:MAX_CHARS]
