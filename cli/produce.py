"""`./samsa produce`: writes records from arguments, files or standard input into a topic.

The command succeeds only after every record is acknowledged; otherwise it reports how many were.
Lines are split as bytes, so any content except the delimiter is unchanged.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

import click

from cli.bootstrap import reaches_cluster, split_pair
from cli.output import Form, output_option, say, show_json
from cli.record_format import unescape
from cli.standard_input import interruptible
from gateway.kafka.clients import MAX_RECORD_BYTES
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import Delivered, Header, NewRecord

# The size of a read: large files stay out of memory, and a typed line is sent at once.
BLOCK_BYTES: Final = 64 * 1024
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
# The shell's exit code of an interrupted program.
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """How to make a record from a text."""

    key: bytes | None
    key_delimiter: bytes | None
    headers: tuple[Header, ...]
    partition: int | None
    timestamp_ms: int | None
    empty_is_null: bool

    def record(self, text: bytes) -> NewRecord:
        key, value = self.key, text
        if self.key_delimiter is not None:
            before, delimiter, after = text.partition(self.key_delimiter)
            if delimiter:
                key, value = before, after
        return NewRecord(
            key=None if self.empty_is_null and not key else key,
            value=None if self.empty_is_null and not value else value,
            headers=self.headers,
            partition=self.partition,
            timestamp_ms=self.timestamp_ms,
        )


@click.command(epilog="Example: ./samsa produce orders '{\"id\": 7}' --key 7")
@click.argument("topic")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option(
    *("-l", "--lines", "lines_file"),
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read records from a file, one per line.",
)
@click.option(
    *("-f", "--file", "whole_files"),
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Send a whole file as one record; may be repeated.",
)
@click.option("-k", "--key", help="Key of every record.")
@click.option(
    "-K", "--key-delimiter", metavar="TEXT", help="Text between key and value in each line."
)
@click.option("-D", "--delimiter", default=r"\n", metavar="TEXT", help="Text between records.")
@click.option(
    *("-H", "--header", "headers"),
    multiple=True,
    metavar="NAME=VALUE",
    help="Header of every record; without =VALUE its value is null.",
)
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(min=0),
    help="Partition of every record. Default: by the key.",
)
@click.option(
    *("-t", "--timestamp"),
    # Librdkafka takes 0 for "now", so the first millisecond of 1970 cannot be sent.
    type=click.IntRange(min=1),
    metavar="MS",
    help="Timestamp in milliseconds since 1970, at least 1. Default: now.",
)
@click.option("-z", "--compression", "codec", type=click.Choice(CODECS), default="none")
@click.option(
    "-c", "--count", type=click.IntRange(min=1), help="Stop after this number of records."
)
@click.option(
    "-Z", "--null", "empty_is_null", is_flag=True, help="Send empty keys and values as null."
)
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def produce(  # noqa: PLR0913 - one for each option
    *,
    connection: Connection,
    topic: str,
    values: tuple[str, ...],
    lines_file: Path | None,
    whole_files: tuple[Path, ...],
    key: str | None,
    key_delimiter: str | None,
    delimiter: str,
    headers: tuple[str, ...],
    partition: int | None,
    timestamp: int | None,
    codec: str,
    count: int | None,
    empty_is_null: bool,
    form: Form,
) -> None:
    """Write records to TOPIC: each VALUE, a file, or each line of standard input."""
    if sum(map(bool, (values, lines_file, whole_files))) > 1:
        raise click.UsageError("records come from VALUEs, from --lines or from --file: choose one")
    making = Making(
        key=None if key is None else key.encode(errors="surrogateescape"),
        key_delimiter=None if key_delimiter is None else required(key_delimiter, "-K"),
        headers=tuple(header(text) for text in headers),
        partition=partition,
        timestamp_ms=timestamp,
        empty_is_null=empty_is_null,
    )
    texts = sources(values, lines_file, whole_files, required(delimiter, "-D"))
    sent = Sent(topic, form)
    producer = TopicWriter(connection, topic, codec=codec, on_delivery=sent.note)
    interrupted = False
    try:
        interrupted = send_all(producer, making, islice(texts, count))
    except KafkaFailure:
        sent.show(is_complete=False)
        raise
    sent.show(is_complete=True)
    if interrupted:
        sys.exit(INTERRUPTED)


def send_all(producer: TopicWriter, making: Making, texts: Iterable[bytes]) -> bool:
    """Send records and wait for all of them; return whether Ctrl-C ended the source early."""
    is_interrupted = False
    try:
        for text in texts:
            producer.send(making.record(text))
    except KeyboardInterrupt:
        # Still send records already read: the user stops the source, not the records.
        is_interrupted = True
    producer.flush()
    return is_interrupted


class Sent:
    """Counts acknowledged records, for the final message."""

    def __init__(self, topic: str, form: Form) -> None:
        self._topic = topic
        self._form = form
        self._counts: Counter[int] = Counter()
        self._last: dict[int, int] = {}

    def note(self, delivered: Delivered) -> None:
        self._counts[delivered.partition] += 1
        last = self._last.get(delivered.partition, -1)
        self._last[delivered.partition] = max(last, delivered.offset)

    def show(self, *, is_complete: bool) -> None:
        total = self._counts.total()
        if self._form is Form.JSON:
            show_json(
                {
                    "topic": self._topic,
                    "acknowledged": total,
                    "complete": is_complete,
                    "partitions": [
                        {"partition": p, "records": self._counts[p], "last_offset": self._last[p]}
                        for p in sorted(self._counts)
                    ],
                }
            )
        elif sys.stderr.isatty() or not is_complete:
            noun = "record" if total == 1 else "records"
            say(f"{total} {noun} acknowledged by topic {self._topic}.", to_stderr=True)


def sources(
    values: tuple[str, ...], lines_file: Path | None, whole_files: tuple[Path, ...], end: bytes
) -> Iterator[bytes]:
    """Yield the text of each record, from any source."""
    if values:
        # Arguments that are not UTF-8 contain surrogates, which become the original bytes.
        yield from (value.encode(errors="surrogateescape") for value in values)
    elif whole_files:
        for path in whole_files:
            with path.open("rb") as file:
                content = file.read(MAX_RECORD_BYTES + 1)
            check_size(content)
            yield content
    elif lines_file:
        with lines_file.open("rb") as file:
            yield from cut(file, end)
    else:
        with interruptible(sys.stdin.fileno()) as stream:
            yield from cut(stream, end)


class Blocks(Protocol):
    def read1(self, size: int, /) -> bytes: ...


def cut(stream: Blocks, end: bytes) -> Iterator[bytes]:
    """Yield the texts between delimiters; the last delimiter may be missing."""
    rest = bytearray()
    searched = 0
    while block := stream.read1(BLOCK_BYTES):
        rest += block
        begin = 0
        while (found := rest.find(end, max(begin, searched))) >= 0:
            yield bytes(rest[begin:found])
            begin = searched = found + len(end)
        del rest[:begin]
        # The delimiter may be incomplete so far.
        searched = max(0, len(rest) - len(end) + 1)
        check_size(rest)
    if rest:
        yield bytes(rest)


def check_size(content: bytes | bytearray) -> None:
    if len(content) > MAX_RECORD_BYTES:
        words = f"it is larger than {MAX_RECORD_BYTES} bytes, the limit of this command"
        raise failure("MESSAGE_TOO_LARGE", "a record", words)


def header(text: str) -> Header:
    if "=" not in text:
        return text, None
    name, value = split_pair(text, "a header")
    return name, value.encode(errors="surrogateescape")


def required(text: str, option: str) -> bytes:
    """Return a delimiter, which cannot be empty."""
    if not text:
        raise click.BadParameter("a delimiter cannot be empty", param_hint=option)
    return unescape(text)
