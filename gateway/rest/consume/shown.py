"""Formats records for version 2. Pure."""

import json
from collections.abc import Sequence

from gateway.kafka.values import Record
from gateway.rest.records.question import Format
from gateway.rest.records.record_json import data_texts


def written(records: Sequence[Record], form: Format) -> bytes:
    """Return a JSON list; data that a format cannot express is base64, with an `error` field."""
    return f"[{','.join(_text(record, form) for record in records)}]".encode()


def _text(record: Record, form: Format) -> str:
    texts, problems = data_texts(record, form)
    error = f',"error":{json.dumps("; ".join(problems))}' if problems else ""
    return (
        f'{{"topic":{json.dumps(record.topic)},"key":{texts["key"]},"value":{texts["value"]}'
        f',"partition":{record.partition},"offset":{record.offset}{error}}}'
    )
