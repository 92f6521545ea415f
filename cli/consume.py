"""`./samsa consume`: prints the records of a topic, from any position, like kcat.

Assigns partitions to itself: joins no group, commits nothing. The reader of the output may close it
at any time (`| head`), which is not an error.
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, Final

import click

from cli.bootstrap import reaches_cluster
from cli.record_format import Render, Shape, harmless, renderer, unescape
from gateway import moments
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.errors import failure
from gateway.kafka.values import Position, PositionKind, Record, Span

WORDS: Final = {
    "beginning": Position(kind=PositionKind.BEGINNING),
    "earliest": Position(kind=PositionKind.BEGINNING),
    "end": Position(kind=PositionKind.END),
    "latest": Position(kind=PositionKind.END),
}
BEGINNING: Final = WORDS["beginning"]
NUMBER: Final = re.compile(r"-?\d{1,19}")
# The protocol carries milliseconds as int64.
MAX_OFFSET: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Where to begin and end; without an end, continue forever."""

    start: Position = BEGINNING
    end: Position | None = None


def parse_range(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> Range:
    """Parse -o like kcat: one position, or s@TIME and e@TIME, or one of them."""
    start, end = None, None
    for text in texts:
        if text.startswith("e@"):
            is_twice, end = end is not None, parse_time(text)
        else:
            is_twice, start = start is not None, parse_position(text)
        if is_twice:
            raise click.BadParameter(
                f"{text!r} gives a second position to begin or end at: give each only once"
            )
    return Range(start=start or BEGINNING, end=end)


def parse_position(text: str) -> Position:
    if text in WORDS:
        return WORDS[text]
    if text.startswith("s@"):
        return parse_time(text)
    if not NUMBER.fullmatch(text) or abs(int(text)) > MAX_OFFSET:
        raise click.BadParameter(
            f"{text!r} is not an offset: give beginning, end, N, -N (before the end), s@TIME or "
            "e@TIME"
        )
    if text.startswith("-"):
        return Position(kind=PositionKind.TAIL, value=-int(text))
    return Position(kind=PositionKind.OFFSET, value=int(text))


def parse_time(text: str) -> Position:
    """Parse s@TIME or e@TIME; in UTC where the time names no zone."""
    typed = text[2:]
    if typed.startswith("-") and NUMBER.fullmatch(typed):
        # Milliseconds before 1970 to kcat, milliseconds ago to the grammar: neither is meant.
        raise click.BadParameter(f"{text!r} is not a time: name the unit, as {text}s or {text}h")
    try:
        value = moments.milliseconds(typed, zone=UTC, now=datetime.now(UTC))
    except moments.NotAMoment as error:
        raise click.BadParameter(f"{error.message}: {error.next_step}") from None
    return Position(kind=PositionKind.TIME, value=value)


def parse_format(
    _context: click.Context, _parameter: click.Parameter, template: str | None
) -> str | None:
    if template is not None:
        try:
            renderer(Shape(template=template))
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return template


@click.command(epilog="Example: ./samsa consume orders --offset -10 --exit")
@click.argument("topic")
@click.option(
    *("-p", "--partition", "partitions"),
    multiple=True,
    type=click.IntRange(min=0),
    help="A partition to read; may be repeated. Default: all.",
)
@click.option(
    *("-o", "--offset", "wanted"),
    multiple=True,
    callback=parse_range,
    metavar="OFFSET",
    help="Where to begin: beginning (the default), end, N, -N (N before the end), s@TIME; and"
    " e@TIME, where to stop. TIME is -1h, 'yesterday 12:00', 2026-01-31T12:00:00Z or"
    " milliseconds since 1970.",
)
@click.option("-e", "--exit", "stops_at_end", is_flag=True, help="Stop at the end of the topic.")
@click.option(
    "-c", "--count", type=click.IntRange(min=1), help="Stop after this number of records."
)
@click.option(
    *("-f", "--format", "template"),
    callback=parse_format,
    metavar="FORMAT",
    help=r"%s value, %S its length, %k key, %K its length, %t topic, %p partition, %o offset,"
    r" %T timestamp, %h headers, %R value length as four bytes, %%; \n \r \t \xNN.",
)
@click.option(
    "-J", "--json", "is_json", is_flag=True, help="Print one JSON object per record, like kcat."
)
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Print key, TEXT and value.")
@click.option(
    *("-D", "--delimiter"),
    default=r"\n",
    metavar="TEXT",
    help="Print TEXT after each record. Default: \\n.",
)
@click.option("-Z", "--null", "shows_null", is_flag=True, help="Print NULL for a null.")
@click.option("-q", "--quiet", is_flag=True, help="Do not report the end of a partition.")
@reaches_cluster
def consume(  # noqa: PLR0913 - one for each option
    *,
    connection: Connection,
    topic: str,
    partitions: tuple[int, ...],
    wanted: Range,
    stops_at_end: bool,
    count: int | None,
    template: str | None,
    is_json: bool,
    key_delimiter: str | None,
    delimiter: str,
    shows_null: bool,
    quiet: bool,
) -> None:
    """Print the records of TOPIC until Ctrl-C, or until the end or count that an option names."""
    shape = Shape(
        template=template,
        is_json=is_json,
        key_delimiter=None if key_delimiter is None else unescape(key_delimiter),
        delimiter=unescape(delimiter),
        shows_null=shows_null,
    )
    # Ctrl-C is the usual way to stop reading, not a failure.
    with suppress(KeyboardInterrupt):
        spans = spans_of(Admin(connection), topic, partitions, wanted)
        with Reader(connection, topic, spans, stops_at_end=stops_at_end) as reader:
            printed = Printer(renderer(shape), count)
            notes = None if quiet or not sys.stderr.isatty() else EndNotes(topic, spans)
            for batch in reader.batches():
                if not printed.take(batch):
                    break
                if notes is not None:
                    notes.tell(reader.ends)


def spans_of(admin: Admin, topic: str, partitions: Sequence[int], wanted: Range) -> list[Span]:
    """Resolve positions to offsets, for the given partitions or for all."""
    [found] = admin.describe([topic])
    known = [partition.index for partition in found.partitions]
    for index in partitions:
        if index not in known:
            raise failure("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic}, partition {index}")
    named = sorted(set(partitions)) or known
    starts = admin.offsets(topic, named, wanted.start)
    ends = {} if wanted.end is None else admin.offsets(topic, named, wanted.end)
    return [Span(partition=index, start=starts[index], end=ends.get(index)) for index in named]


class Printer:
    """Writes records to the output until there are enough, or its reader has closed it."""

    def __init__(self, render: Render, count: int | None, output: BinaryIO | None = None) -> None:
        self._output = sys.stdout.buffer if output is None else output
        self._left = count
        # A value may contain control characters for the terminal.
        self._render = (lambda r: harmless(render(r))) if self._output.isatty() else render

    def take(self, batch: Iterable[Record]) -> bool:
        """Write records; return whether more are wanted."""
        try:
            for record in batch:
                self._output.write(self._render(record))
                if self._left is not None:
                    self._left -= 1
                    if self._left == 0:
                        break
            self._output.flush()
        except BrokenPipeError:
            # Python flushes again at exit, which must not raise another error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._output.fileno())
            return False
        return self._left != 0


class EndNotes:
    """Notifies a user at a terminal that a partition has no more records for now."""

    def __init__(self, topic: str, spans: Sequence[Span]) -> None:
        self._topic = topic
        self._untold = {span.partition for span in spans}

    def tell(self, ends: dict[int, int]) -> None:
        for partition in sorted(self._untold & set(ends)):
            self._untold.discard(partition)
            click.echo(
                f"% end of {self._topic} [{partition}] at offset {ends[partition]}", err=True
            )
