"""Formats errors for display: the message first, then the stack trace, without secrets."""

import traceback
from collections.abc import Iterable
from typing import Final

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


def trace(error: BaseException, secrets: Iterable[str]) -> str:
    """Return the message of an error in the first line, and its stack trace below."""
    head = f"{type(error).__name__}: {words(error)}"
    stack = "".join(traceback.format_exception(error))
    return masked(f"{head}\n{stack}", secrets)[:MAX_TRACE_CHARS]
