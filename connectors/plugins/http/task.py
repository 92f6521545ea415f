"""Sends records as requests, one after another, and reports the result of each.

Requests are sequential, so that records of a partition arrive in order. If one fails after others
have succeeded, those are committed first, so that only a process that dies sends any of them
again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from connectors.plugins.http.keys import Settings, settings
from connectors.sdk import json_text
from connectors.sdk.connector import Parsed, SinkContext, SinkTask
from connectors.sdk.errors import ConnectorError, DataError, RecordError, RetriableError
from connectors.sdk.exchanges import Answer, Connection, trust
from connectors.sdk.records import SinkRecord, TopicPartition

KEPT: Final = "http"
# Limits the memory of a request, and the size that servers accept.
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
# The longest Retry-After to obey.
MAX_WAIT_S: Final = 3600.0
# The same request may succeed later.
RETRIABLE: Final = frozenset({408, 425, 429})
# The server refuses all requests with this config, whatever the record.
UNWANTED: Final = frozenset({401, 403, 405, 407})
# The length of an answer's text in an error.
MAX_SAID_CHARS: Final = 200


@dataclass(slots=True)
class Kept:
    """The connection, and the certificates to verify it."""

    connection: Connection
    certificates: str

    def close(self) -> None:
        self.connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A record as a part of a request."""

    index: int
    record: SinkRecord
    target: str
    body: bytes


def _now() -> datetime:
    return datetime.now(UTC)


class HttpTask(SinkTask):
    def __init__(self, *, clock: Callable[[], datetime] = _now) -> None:
        self._clock = clock
        self._context: SinkContext
        self._kept: Kept
        self._settings: Settings
        # The offset up to which each partition was sent or skipped in this slice.
        self._sent: dict[TopicPartition, int] = {}
        self._is_cut = False
        # Consecutive retries of requests.
        self._failures = 0

    def start(self, context: SinkContext, parsed: Parsed) -> None:
        self._context = context
        self._failures = context.retries
        self._settings = settings(parsed)
        origin, certificates = self._settings.address.origin, self._settings.certificates
        kept = context.kept.get(KEPT)
        if kept is None or (kept.connection.origin, kept.certificates) != (origin, certificates):
            if kept is not None:
                kept.close()
            tls = trust(certificates) if certificates else None
            kept = Kept(Connection(origin, tls=tls), certificates)
            context.kept[KEPT] = kept
        self._kept = kept

    def put(self, records: list[SinkRecord]) -> None:
        self._is_cut = False
        parts = self._parts(records)
        has_sent = False
        while request := next(parts, None):
            if has_sent and self._context.should_yield:
                self._leave(records, request[0].index)
                return
            try:
                self._send(request)
            except RetriableError:
                if not has_sent:
                    raise
                # Commit the records that arrived; the next slice retries this one at once.
                self._leave(records, request[0].index)
                return
            has_sent = True

    def flush(self) -> Mapping[TopicPartition, int] | None:
        """Return the acknowledged offsets; None (all) unless `put` has ended early."""
        return dict(self._sent) if self._is_cut else None

    def _leave(self, records: list[SinkRecord], index: int) -> None:
        """Have the records from an index on delivered again."""
        self._is_cut = True
        first: dict[TopicPartition, int] = {}
        for record in records[index:]:
            place = _place(record)
            if record.origin_offset >= self._sent.get(place, 0):
                first.setdefault(place, record.origin_offset)
        for place, offset in first.items():
            self._context.seek(place, offset)

    # --- what is sent --------------------------------------------------------------------------

    def _parts(self, records: list[SinkRecord]) -> Iterator[list[Part]]:
        """Yield the records of each request, in order; RecordError for an unsendable one."""
        request: list[Part] = []
        size = 0
        for index, record in enumerate(records):
            if record.origin_offset < self._sent.get(_place(record), 0):
                continue
            if record.value is None and self._settings.is_null_left_out:
                if not request:
                    self._note(record)
                continue
            try:
                part = self._part(index, record)
            except DataError as error:
                # Send those before it first, since the batch comes again without it.
                if request:
                    yield request
                raise RecordError(str(error), index=index) from error
            is_other = request and part.target != request[0].target
            if is_other or size + len(part.body) > MAX_BODY_BYTES:
                yield request
                request, size = [], 0
            request.append(part)
            size += len(part.body)
            if len(request) >= self._settings.batching.size:
                yield request
                request, size = [], 0
        if request:
            yield request

    def _part(self, index: int, record: SinkRecord) -> Part:
        body = self._body(record)
        if len(body) > MAX_BODY_BYTES:
            raise DataError(f"the value has {len(body)} bytes, at most {MAX_BODY_BYTES} are sent")
        return Part(index=index, record=record, target=self._settings.address.of(record), body=body)

    def _body(self, record: SinkRecord) -> bytes:
        value = record.value
        if value is None:
            raise DataError("the record has no value; behavior.on.null.values=ignore leaves it out")
        if not self._settings.is_json and isinstance(value, bytes):
            return value
        try:
            is_text = not self._settings.is_json and isinstance(value, str)
            return (value if is_text else json_text.write(value)).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"the value has half a character: {error}") from error

    def _send(self, request: list[Part]) -> None:
        batching, told = self._settings.batching, self._settings
        body = batching.separator.join(part.body for part in request)
        if batching.is_on:
            body = batching.prefix + body + batching.suffix
        try:
            answer = self._kept.connection.exchange(
                told.method,
                request[0].target,
                headers=told.headers,
                body=body,
                within_s=told.timeout_s,
            )
            self._context.reached()
            self._judge(answer, request)
        except RetriableError as error:
            self._failures += 1
            if 0 <= told.max_retries < self._failures:
                repeated = f"; it was repeated {told.max_retries} times, which is max.retries"
                raise ConnectorError(
                    error.text, about_record=f"{error.about_record or ''}{repeated}"
                ) from error
            raise
        self._failures = 0
        for part in request:
            self._note(part.record)

    def _note(self, record: SinkRecord) -> None:
        self._sent[_place(record)] = record.origin_offset + 1

    # --- what is answered ----------------------------------------------------------------------

    def _judge(self, answer: Answer, request: list[Part]) -> None:
        """Raise the error for an answer, by who can fix it."""
        status = answer.status
        if 200 <= status < 300:
            return
        # Omit the path: for many servers it contains a secret.
        said = f"{self._settings.address.origin} answered {status}"
        # A server may repeat the record.
        answered = _words(answer)
        if status in RETRIABLE or status >= 500:
            raise RetriableError(said, wait_s=self._wait(answer), about_record=answered)
        if 300 <= status < 400:
            advice = ": redirects are not followed, give the address that they lead to"
            raise ConnectorError(said, about_record=f"{answered}{advice}")
        if status in UNWANTED or status < 300:
            advice = "; check http.url, request.method and the authorization"
            raise ConnectorError(said, about_record=f"{answered}{advice}")
        if len(request) > 1:
            raise ConnectorError(
                said,
                about_record=f"{answered} to a batch of {len(request)} records, and not which of"
                " them is at fault; batch.max.size=1 finds it",
            )
        # Unknown addresses are the record's fault only if the record chose the address.
        if status in {404, 410} and not self._settings.address.is_of_record:
            raise ConnectorError(said, about_record=f"{answered}; check http.url")
        raise RecordError(said, index=request[0].index, about_record=answered)

    def _wait(self, answer: Answer) -> float | None:
        text = answer.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit() and len(text) < 10:
            return min(float(text), MAX_WAIT_S)
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError):
            return self._settings.backoff_s
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return min(max((moment - self._clock()).total_seconds(), 0.0), MAX_WAIT_S)


def _words(answer: Answer) -> str:
    text = answer.body[: 4 * MAX_SAID_CHARS].decode("utf-8", "replace")
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return f": {text[:MAX_SAID_CHARS]}" if text else ""


def _place(record: SinkRecord) -> TopicPartition:
    return TopicPartition(topic=record.origin_topic, partition=record.origin_partition)
