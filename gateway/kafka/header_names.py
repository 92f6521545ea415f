"""Which names of headers the client library can take; others it cuts, or ends the process by."""

from gateway.kafka.errors import failure
from gateway.kafka.values import NewRecord


def require_names(record: NewRecord) -> None:
    """Refuse a name with half of a surrogate pair, or with a NUL in it."""
    for name, _ in record.headers:
        is_text = name.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in name)
        if not is_text or "\0" in name:
            raise failure("INVALID_REQUEST", f"header {name!r}", "its name is not plain text")
