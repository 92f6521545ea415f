"""Encodes the records of an object: as lines of JSON, or as a Parquet file."""

import gzip
import io
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from connectors.sdk import columns, json_text
from connectors.sdk.errors import DataError
from connectors.sdk.records import SinkRecord
from connectors.sdk.schemas import Struct, Type

PARQUET_CODECS: Final = ("none", "gzip", "snappy", "zstd")
# The approximate memory of a value without a length.
VALUE_BYTES: Final = 16


class Format(ABC):
    extension: str
    content_type: str

    @abstractmethod
    def take(self, record: SinkRecord) -> tuple[Any, int]:
        """Return the form in which to hold a record until its file is written, and its size.

        Raises DataError if the format cannot represent it.
        """

    @abstractmethod
    def write(self, payloads: Sequence[Any]) -> bytes:
        """Return the contents of the file."""


class JsonLines(Format):
    content_type = "application/x-ndjson"

    def __init__(self, *, gzip_level: int | None) -> None:
        self._gzip_level = gzip_level
        self.extension = ".json" if gzip_level is None else ".json.gz"
        if gzip_level is not None:
            self.content_type = "application/gzip"

    def take(self, record: SinkRecord) -> tuple[Any, int]:
        try:
            line = json_text.write(record.value).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"the value has half a character: {error}") from error
        return line, sys.getsizeof(line)

    def write(self, payloads: Sequence[Any]) -> bytes:
        text = b"\n".join((*payloads, b""))
        # No time in the header, so that the same records give the same bytes.
        return (
            text
            if self._gzip_level is None
            else gzip.compress(text, compresslevel=self._gzip_level, mtime=0)
        )


class Parquet(Format):
    content_type = "application/vnd.apache.parquet"

    def __init__(self, *, codec: str) -> None:
        self._codec = codec
        self.extension = ".parquet" if codec == "none" else f".{_SHORT[codec]}.parquet"

    def take(self, record: SinkRecord) -> tuple[Any, int]:
        value = record.value
        if not isinstance(value, Struct) or value.schema.type is not Type.STRUCT:
            raise DataError(
                "Parquet takes records with a schema: use a converter that gives one, "
                "as JsonConverter with value.converter.schemas.enable=true"
            )
        # Convert it alone, to find a value that does not fit now, not in a file of many.
        columns.to_table(value.schema, [value])
        return value, weigh(value)

    def write(self, payloads: Sequence[Any]) -> bytes:
        from pyarrow import parquet  # noqa: PLC0415 (an extra, which may not be there)

        table = columns.to_table(payloads[0].schema, payloads)
        sink = io.BytesIO()
        parquet.write_table(table, sink, compression=self._codec)
        return sink.getvalue()


_SHORT: Final = {"gzip": "gz", "snappy": "snappy", "zstd": "zstd"}


def weigh(value: Any) -> int:
    """Return the approximate memory of a value."""
    match value:
        case str() | bytes():
            return VALUE_BYTES + len(value)
        case Struct():
            return VALUE_BYTES + sum(weigh(one) for one in value.values.values())
        case dict():
            return VALUE_BYTES + sum(weigh(key) + weigh(one) for key, one in value.items())
        case list():
            return VALUE_BYTES + sum(map(weigh, value))
    return VALUE_BYTES
