"""Sends records as files: an export, or a part of one record. Both are logged in the audit."""

import json
import re
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any, Final

from django.db import connections

from console.messages.browse import send_page
from console.messages.export import FILES, MAX_NOTES, NOTED, FileForm, Rows, forms_of
from console.messages.filter_language import Filter, filter_of
from console.messages.jobs import Job, Means, Refusal, Visitor
from console.messages.lines import Forms
from console.messages.opening import Order
from console.messages.question import (
    MAX_EXPORTED,
    BadQuestion,
    Mode,
    Part,
    Query,
    Question,
    part_of,
    question_of,
)
from console.messages.search import send_hits
from gateway.access import audit, selectors
from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.hits import MOST_SHOWN_BYTES
from gateway.kafka.readers.pages import Bounds
from gateway.kafka.readers.pipe import Pipe, Stopped
from gateway.kafka.values import Record, Span

BYTES: Final = b"application/octet-stream"
# A file may take its time, and hold a day's records; a page requests less.
FILE: Final = Bounds(size=4 * 1024**3, seconds=3_600.0)
# Bytes of a downloaded value per piece: about what a socket accepts at once.
PIECE_BYTES: Final = 256 * 1024
NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")


def export(means: Means, query: Query, zone: tzinfo, visitor: Visitor) -> Job:
    now = datetime.now(UTC)
    question = question_of(query, zone=zone, now=now, most=MAX_EXPORTED)
    form = query.choice("form", FileForm, FileForm.NDJSON)
    if question.mode is Mode.TAIL:
        raise BadQuestion("a tail has no end to make a file of", "give another mode")
    wanted = filter_of(question.filter, zone=zone, now=now)
    forms = forms_of(Forms(key=question.key, value=question.value))
    rows = Rows(forms=forms, form=form, zone=zone)
    return Job(
        cluster=question.cluster,
        topic=question.topic,
        content_type=FILES[form].content_type,
        work=partial(_export, means, question, wanted, rows, visitor),
        headers=(_attachment(f"{question.topic}.{form.value}"),),
    )


def _export(
    means: Means,
    question: Question,
    wanted: Filter | None,
    rows: Rows,
    visitor: Visitor,
    admission: Admission,
    pipe: Pipe,
) -> None:
    kind, notes = FILES[rows.form], deque[Mapping[str, Any]](maxlen=MAX_NOTES)

    def hear(line: bytes) -> None:
        note = json.loads(line)
        if note["type"] in NOTED:
            notes.append(note)

    order = means.order(admission, question, pipe, hears=hear)
    _record_in_audit("records.exported", visitor, question, form=rows.form.value)
    if kind.first:
        pipe.put(kind.first)
    try:
        _send(means, order, wanted, rows)
    except KafkaFailure as failed:
        notes.append({"type": "done", "verdict": "failed", "sentence": f"failed: {failed}"})
    except Stopped as stopped:
        notes.append({"type": "done", "verdict": "stopped", "sentence": f"stopped: {stopped}"})
    for note in notes:
        pipe.put_last(kind.last(note))


def _send(means: Means, order: Order, wanted: Filter | None, rows: Rows) -> None:
    if wanted is None:
        send_page(order, write=rows.line, bounds=FILE)
        return
    send_hits(
        order,
        wanted=wanted,
        ask=means.ask,
        slots=means.slots,
        write=rows.line,
        shown_bytes=MOST_SHOWN_BYTES,
    )


def part(means: Means, query: Query, _zone: tzinfo, visitor: Visitor) -> Job:
    wanted = part_of(query)
    kind = wanted.name.replace(":", "-")
    return Job(
        cluster=wanted.cluster,
        topic=wanted.topic,
        content_type=BYTES,
        work=partial(_part, means, wanted, visitor),
        headers=(_attachment(f"{wanted.topic}-{wanted.partition}-{wanted.offset}-{kind}.bin"),),
    )


def _part(means: Means, wanted: Part, visitor: Visitor, admission: Admission, pipe: Pipe) -> None:
    question = Question(
        cluster=wanted.cluster, topic=wanted.topic, partitions=(wanted.partition,), limit=1
    )
    order = means.order(admission, question, pipe)
    for reason in order.places.dark.values():
        raise Refusal(503, reason, "start the broker, and try again")
    place = f"{wanted.partition}:{wanted.offset}"
    _record_in_audit("record.downloaded", visitor, question, place=place, part=wanted.name)
    try:
        content = _content(order, wanted)
    except KafkaFailure as failed:
        status = 404 if failed.kind is Kind.NOT_FOUND else 503
        raise Refusal(status, failed.message, failed.next_step) from None
    view = memoryview(content)
    for start in range(0, len(view), PIECE_BYTES):
        pipe.put(bytes(view[start : start + PIECE_BYTES]))


def _content(order: Order, wanted: Part) -> bytes:
    span = Span(partition=wanted.partition, start=wanted.offset, end=wanted.offset + 1)
    with order.source.reading([span]) as reader:
        for batch in reader.batches():
            order.pipe.check()
            for record in batch:
                return _part_of(record, wanted)
    raise Refusal(
        404,
        f"{wanted.topic} has no record at offset {wanted.offset} of partition {wanted.partition}",
        "it may be compacted away; look at the records around it",
    )


def _part_of(record: Record, wanted: Part) -> bytes:
    content = record.key if wanted.is_key else record.value
    if wanted.header is not None:
        if wanted.header >= len(record.headers):
            raise Refusal(
                404,
                f"the record has {len(record.headers)} headers, counted from 0, and none of number"
                f" {wanted.header}",
                "open the record again",
            )
        content = record.headers[wanted.header][1]
    if content is None:
        raise Refusal(404, f"the {wanted.name} is null and has no bytes", "look at another part")
    return content


def _attachment(name: str) -> tuple[bytes, bytes]:
    """Return the header that makes a browser save the answer instead of showing it."""
    safe = NOT_IN_NAMES.sub("_", name)
    return b"content-disposition", f'attachment; filename="{safe}"'.encode()


def _record_in_audit(event: str, visitor: Visitor, question: Question, **details: str) -> None:
    """Audit who downloads records, before the first one is sent."""
    try:
        name = selectors.user_name(visitor.user_id)
    finally:
        connections.close_all()
    audit.record(
        event,
        actor=audit.Actor(name=name, address=visitor.address),
        subject=f"topic {question.topic} of cluster {question.cluster}",
        mode=question.mode.value,
        limit=str(question.limit),
        filter=question.filter,
        **details,
    )
