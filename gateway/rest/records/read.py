"""Answers a bounded read with the records that exist, or that arrive while the caller waits."""

import asyncio

from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.engine import Readers
from gateway.kafka.readers.reading import Reading
from gateway.kafka.readers.values import End, Gap, News, size_of
from gateway.kafka.values import Place, Record
from gateway.rest.calls import Call
from gateway.rest.records.question import Question, positions_text
from gateway.rest.records.record_json import dumped, end_value, gap_value, record_text


async def answer(call: Call, admission: Admission, question: Question, readers: Readers) -> None:
    """Read and answer. Gaps are reported beside the records and do not count as records."""
    starts = question.starts(await readers.partitions(question.topics))
    reading = await readers.open(admission, starts)
    try:
        news, positions, ends = await _read(reading, question)
    finally:
        reading.close()
    records = [record_text(one, question.format) for one in news if isinstance(one, Record)]
    call.records += len(records)
    places = [
        {"partition": place.partition, "next_offset": positions[place], "end_offset": ends[place]}
        for place in sorted(positions)
    ]
    rest = {
        "next": positions_text(positions),
        "partitions": places,
        "gaps": [gap_value(one) for one in news if isinstance(one, Gap)],
        "ended": [end_value(one) for one in news if isinstance(one, End)],
    }
    text = f'{{"records":[{",".join(records)}],{dumped(rest)[1:]}'
    await call.answer(200, text.encode("ascii"))


async def _read(
    reading: Reading, question: Question
) -> tuple[list[News], dict[Place, int], dict[Place, int]]:
    assert question.max_records is not None, "a read in one piece has an end"
    found: list[News] = []
    records, size = 0, 0
    loop = asyncio.get_running_loop()
    deadline = loop.time() + question.wait_s
    while records < question.max_records and size < question.max_bytes and not reading.is_over:
        # Once records were found, wait only for existing ones, not for new ones.
        has_all = all(offset >= reading.ends[place] for place, offset in reading.positions.items())
        if found and has_all:
            break
        news = await reading.take(
            max_records=question.max_records - records,
            # Read at least one record, and after it only those that fit.
            max_bytes=question.max_bytes - size,
            wait_s=max(0.0, deadline - loop.time()),
        )
        if not news:
            break
        found += news
        records += sum(isinstance(one, Record) for one in news)
        size += sum(map(size_of, news))
    return found, reading.positions, reading.ends
