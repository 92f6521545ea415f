"""Rejects header names that the client library cuts off, or that crash the process."""

from gateway.kafka.errors import failure
from gateway.kafka.values import NewRecord


def require_names(record: NewRecord) -> None:
    """Raise KafkaFailure for a name with a lone surrogate or a NUL."""
    for name, _ in record.headers:
        is_text = name.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in name)
        if not is_text or "\0" in name:
            raise failure("INVALID_REQUEST", f"header {name!r}", "its name is not plain text")
