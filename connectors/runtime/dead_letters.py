"""Makes dead letters: the failed record, with the reason in Connect's headers.

Pure.
"""

import traceback
from collections.abc import Iterable
from typing import Final

from connectors.runtime import retry_topic
from connectors.runtime.masking import masked
from connectors.runtime.retry_topic import without
from connectors.runtime.steps import StepFailed
from connectors.runtime.traces import java_name, words
from gateway.kafka.values import NewRecord, Record

PREFIX: Final = "__connect.errors."
# A record with its stack trace must fit the limit that the source topic has for the record alone.
MAX_STACK_CHARS: Final = 8_000
MAX_MESSAGE_CHARS: Final = 2_000


def letter(
    raw: Record,
    failed: StepFailed,
    *,
    connector: str,
    task: int,
    has_context: bool,
    secrets: Iterable[str],
) -> NewRecord:
    """Return the dead letter for a record; the record keeps its headers."""
    # Samsa's headers are trusted in a retry topic only: in other topics anyone may write them.
    headers = without(raw.headers)
    retried = None
    if raw.topic == retry_topic.name_for(connector):
        retried = retry_topic.origin_in(raw.headers)
    if has_context:
        told = context(raw, failed, connector=connector, task=task, secrets=tuple(secrets))
        headers = (
            *(header for header in headers if not header[0].startswith(PREFIX)),
            *((PREFIX + name, text.encode()) for name, text in told.items()),
        )
    if retried is not None:
        headers = (*headers, *retry_topic.headers_of(retried))
    return NewRecord(value=raw.value, key=raw.key, headers=headers, timestamp_ms=raw.timestamp_ms)


def context(
    raw: Record, failed: StepFailed, *, connector: str, task: int, secrets: tuple[str, ...]
) -> dict[str, str]:
    """Parse the headers; for a record sent again, the place is that of the latest read."""
    cause = failed.cause
    # Mask before cutting, since a part of a secret would remain.
    said = masked(words(cause), secrets)
    stack = masked("".join(traceback.format_exception(cause)), secrets)
    return {
        "topic": raw.topic,
        "partition": str(raw.partition),
        "offset": str(raw.offset),
        "connector.name": connector,
        "task.id": str(task),
        "stage": failed.stage.value,
        "class.name": failed.class_name,
        "exception.class.name": java_name(cause),
        "exception.message": said[:MAX_MESSAGE_CHARS],
        "exception.stacktrace": stack[-MAX_STACK_CHARS:],
    }
