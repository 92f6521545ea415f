"""Formats errors for display: the message first, then the stack trace, without secrets.

Parts that may repeat records are marked (`record_parts`).
"""

import traceback
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from connectors.runtime import record_parts
from connectors.runtime.masking import masked
from connectors.sdk.errors import (
    ConfigError,
    ConnectorError,
    DataError,
    RecordError,
    RetriableError,
)
from gateway.kafka.errors import KafkaFailure

# A page shows it in full, and a row of the database holds it.
MAX_TRACE_CHARS: Final = 16_000
# Java's names of our errors, for programs that read Connect's headers and traces.
JAVA_NAMES: Final[dict[type[Exception], str]] = {
    RetriableError: "org.apache.kafka.connect.errors.RetriableException",
    DataError: "org.apache.kafka.connect.errors.DataException",
    ConfigError: "org.apache.kafka.common.config.ConfigException",
    RecordError: "org.apache.kafka.connect.errors.ConnectException",
    ConnectorError: "org.apache.kafka.connect.errors.ConnectException",
}


def java_name(error: BaseException) -> str:
    """Return the class of an error in Connect, or its own name."""
    kind = type(error)
    known = next((JAVA_NAMES[parent] for parent in kind.__mro__ if parent in JAVA_NAMES), None)
    return known or f"{kind.__module__}.{kind.__qualname__}"


def words(error: BaseException) -> str:
    """Return the message of an error, with what to do next if it says so."""
    if isinstance(error, KafkaFailure):
        about = f" about {error.value}" if error.value else ""
        return f"{error}{about}{f': {error.next_step}' if error.next_step else ''}"
    return str(error) or type(error).__name__


def parts(error: BaseException) -> tuple[str, str]:
    """Return the message of an error without records, and the rest, which may repeat them.

    Only authors of connectors tell the two apart; of other exceptions, any word may be a value.
    """
    if isinstance(error, KafkaFailure):
        return words(error), ""
    if not isinstance(error, ConnectorError):
        return "", words(error)
    if error.about_record is not None:
        return error.text, error.about_record
    is_of_record = isinstance(error, (DataError, RecordError))
    return ("", words(error)) if is_of_record else (words(error), "")


def told(error: BaseException, secrets: Iterable[str], topics: Collection[str]) -> str:
    """Return the message of an error while records of some topics are handled."""
    text, about_record = parts(error)
    return masked(f"{text}{record_parts.marked(about_record, topics)}", secrets)


def trace(
    error: BaseException, secrets: Iterable[str], topics: Collection[str] | None = None
) -> str:
    """Return the message of an error in the first line, and its stack trace below.

    Without topics, no records were handled.
    """
    stack = "".join(traceback.format_exception(error))
    if topics is None:
        said = words(error)
    else:
        said = told(error, (), topics)
        if any(parts(one)[1] for one in _chain(error)):
            stack = record_parts.marked(stack, topics)
    return masked(f"{type(error).__name__}: {said}\n{stack}", secrets)[:MAX_TRACE_CHARS]


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that a trace shows as its causes."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__]
