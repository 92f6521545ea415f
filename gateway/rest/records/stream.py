"""Answers a read with an endless stream: lines of JSON, or server-sent events.

A slow client is waited for, and nothing is fetched for it meanwhile. Every stream ends with a final
message that says why, unless the client has disconnected or reads no more.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from gateway.kafka.readers.reading import Reading
from gateway.kafka.readers.values import Begin, End, Gap, News
from gateway.kafka.values import Place, Record
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError
from gateway.rest.records.question import Format, Question, event_id, positions_text
from gateway.rest.records.record_json import (
    begin_value,
    dumped,
    end_value,
    gap_value,
    record_text,
)

# The size of one piece of a stream; each stream that writes holds one.
PIECE_RECORDS: Final = 500
PIECE_BYTES: Final = 256 * 1024
# An idle stream sends a heartbeat, well within the minute after which proxies close it.
HEARTBEAT_S: Final = 15.0
# A client that reads nothing for this long is taken for gone.
STUCK_S: Final = 120.0
# The final message must be sent within this; a terminating process waits for it.
LAST_WORD_S: Final = 1.0


class Form(Enum):
    """The format of a stream; the value is its media type."""

    LINES = "application/x-ndjson"
    EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why the server ends a stream."""

    name: str
    message: str
    code: int = 0


class Writer(Protocol):
    """Formats the messages of a stream."""

    def news(self, news: Sequence[News]) -> str: ...
    def heartbeat(self) -> str: ...
    def last(self, reason: Reason) -> str: ...


class Lines:
    """One line per record; all other messages have the field `event`."""

    def __init__(self, form: Format, positions: Mapping[Place, int]) -> None:
        self._format = form
        self._at = dict(positions)

    def news(self, news: Sequence[News]) -> str:
        lines = []
        for one in news:
            move(self._at, one)
            if isinstance(one, Record):
                lines.append(record_text(one, self._format))
            else:
                name, value = event_of(one)
                lines.append(dumped({"event": name, **value}))
        return "".join(f"{line}\n" for line in lines)

    def heartbeat(self) -> str:
        return dumped({"event": "heartbeat", "next": positions_text(self._at)}) + "\n"

    def last(self, reason: Reason) -> str:
        return (
            dumped({"event": "close", **fields_of(reason), "next": positions_text(self._at)}) + "\n"
        )


class Events:
    """Consecutive records form one event; its id has the positions of all partitions after it."""

    def __init__(self, form: Format, positions: Mapping[Place, int]) -> None:
        self._format = form
        self._at = dict(positions)

    def news(self, news: Sequence[News]) -> str:
        events: list[str] = []
        records: list[str] = []
        for one in news:
            if isinstance(one, Record):
                records.append(record_text(one, self._format))
            else:
                self._flush(events, records)
            move(self._at, one)
            if not isinstance(one, Record):
                name, value = event_of(one)
                events.append(self._event(name, dumped(value)))
        self._flush(events, records)
        return "".join(events)

    def heartbeat(self) -> str:
        return f"event: heartbeat\nid: {event_id(self._at)}\ndata: {{}}\n\n"

    def last(self, reason: Reason) -> str:
        return self._event("close", dumped(fields_of(reason)))

    def _flush(self, events: list[str], records: list[str]) -> None:
        if records:
            events.append(self._event("batch", f'{{"records":[{",".join(records)}]}}'))
            records.clear()

    def _event(self, name: str, data: str) -> str:
        return f"event: {name}\nid: {event_id(self._at)}\ndata: {data}\n\n"


WRITERS: Final[Mapping[Form, Callable[[Format, Mapping[Place, int]], Writer]]] = {
    Form.LINES: Lines,
    Form.EVENTS: Events,
}


class Stream:
    """The stream of one call."""

    def __init__(
        self,
        call: Call,
        question: Question,
        reading: Reading,
        form: Form,
        *,
        watch: Coroutine[None, None, ApiError],
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        self._call = call
        self._question = question
        self._reading = reading
        self._form = form
        self._watch = watch
        self._heartbeat_s = heartbeat_s
        self._writer: Writer = WRITERS[form](question.format, reading.positions)
        self._is_writing = False
        self._ended: asyncio.Future[Reason] = asyncio.get_running_loop().create_future()

    def end(self, reason: Reason) -> None:
        """End the stream; the first reason wins."""
        if not self._ended.done():
            self._ended.set_result(reason)

    async def run(self) -> None:
        headers = [("Cache-Control", "no-store"), ("X-Accel-Buffering", "no")]
        await self._call.start(200, self._form.value, headers)
        # The client learns that the stream is open before the first record.
        await self._write(self._writer.heartbeat())
        loop = asyncio.get_running_loop()
        pump = loop.create_task(self._pump())
        refused = loop.create_task(self._say_when_refused())
        left = loop.create_task(self._call.left())
        tasks: list[asyncio.Future[None]] = [pump, refused, left]
        ended = asyncio.ensure_future(self._until_ended())
        try:
            await asyncio.wait([*tasks, ended], return_when=asyncio.FIRST_COMPLETED)
            if self._is_writing and self._ended.done():
                # A half-written piece would be missing, or be sent twice.
                await asyncio.wait([pump], timeout=LAST_WORD_S)
        finally:
            for task in [*tasks, ended]:
                task.cancel()
            results = await asyncio.gather(*tasks, ended, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, TimeoutError):
                raise result
        if self._ended.done() and not self._is_writing:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORD_S):
                    await self._call.write(self._writer.last(self._ended.result()).encode())
                    await self._call.end()

    async def _until_ended(self) -> None:
        await asyncio.shield(self._ended)

    async def _pump(self) -> None:
        """Read and write until there is nothing more to read."""
        left = self._question.max_records
        while not self._ended.done() and (left is None or left > 0):
            at_once = PIECE_RECORDS if left is None else min(PIECE_RECORDS, left)
            news = await self._reading.take(
                max_records=at_once, max_bytes=PIECE_BYTES, wait_s=self._heartbeat_s
            )
            await self._write(self._writer.news(news) or self._writer.heartbeat())
            records = sum(isinstance(one, Record) for one in news)
            self._call.records += records
            if left is not None:
                left -= records
            if self._reading.is_over:
                self.end(Reason(name="ended", message="no partition is left to be read"))
                return
        self.end(Reason(name="complete", message="as many records as were asked for"))

    async def _write(self, text: str) -> None:
        """Write all as fast as the client reads. Raises TimeoutError if it reads nothing."""
        self._is_writing = True
        async with asyncio.timeout(STUCK_S):
            await self._call.write(text.encode("ascii"))
        self._is_writing = False

    async def _say_when_refused(self) -> None:
        error = await self._watch
        self._call.errors += 1
        self.end(Reason(name="refused", message=error.message, code=error.code.number))


def move(at: dict[Place, int], news: News) -> None:
    """Update the position of a partition for a piece of news."""
    if isinstance(news, Record):
        at[Place(topic=news.topic, partition=news.partition)] = news.offset + 1
    elif isinstance(news, Gap):
        at[news.place] = news.next
    elif isinstance(news, Begin):
        at[news.place] = news.offset
    else:
        at.pop(news.place, None)


def event_of(news: Gap | Begin | End) -> tuple[str, dict[str, object]]:
    match news:
        case Gap():
            return "gap", gap_value(news)
        case Begin():
            return "assigned", begin_value(news)
        case End():
            return "end", end_value(news)


def fields_of(reason: Reason) -> dict[str, object]:
    code = {"error_code": reason.code} if reason.code else {}
    return {"reason": reason.name, "message": reason.message, **code}
