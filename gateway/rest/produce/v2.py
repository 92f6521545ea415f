"""Produces records of version 2: one body for one topic, with one complete answer."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Delivered, NewRecord
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError, Code
from gateway.rest.produce.desk import Desk, Outcome
from gateway.rest.produce.formats import SHOWN, Format, decoded, whole, why_no_json
from gateway.rest.produce.receipts import api_error

V2: Final = "application/vnd.kafka.v2+json"
EMBEDDED: Final = {
    "application/vnd.kafka.binary.v2+json": Format.BINARY,
    "application/vnd.kafka.json.v2+json": Format.JSON,
    # Without a format, data is base64, as in the published interface.
    V2: Format.BINARY,
    "application/json": Format.BINARY,
}
# What most send.
RECORDS: Final = tuple(EMBEDDED)[:2]
OF_REGISTRY: Final = frozenset(
    f"application/vnd.kafka.{name}.v2+json" for name in ("avro", "jsonschema", "protobuf")
)
# Records of one call: each takes memory until all are written.
MAX_RECORDS: Final = 10_000
MAX_NUMBER: Final = 2**31 - 1


class RecordIn(msgspec.Struct, forbid_unknown_fields=True):
    value: msgspec.Raw = msgspec.Raw()
    key: msgspec.Raw = msgspec.Raw()
    partition: int | str | None = None


class Body(msgspec.Struct, forbid_unknown_fields=True):
    records: Annotated[list[RecordIn], msgspec.Meta(min_length=1, max_length=MAX_RECORDS)]
    key_schema: str | None = None
    key_schema_id: int | str | None = None
    value_schema: str | None = None
    value_schema_id: int | str | None = None


BODIES: Final = msgspec.json.Decoder(Body)


async def produce_v2(call: Call, desk: Desk) -> None:
    """Serve `POST /topics/{topic}`, and below it `/partitions/{partition}`."""
    given = call.headers.get("content-type", V2).partition(";")[0].strip().lower()
    if given not in EMBEDDED and given not in OF_REGISTRY:
        listed = ", ".join(EMBEDDED)
        raise ApiError(Code.UNSUPPORTED_TYPE, f"the body is {given[:80]!r}: send one of {listed}")
    partition = partition_of(call)
    topic = await desk.topic_of(call, partition)
    async with desk.body(call) as text:
        body = parsed(text)
        if given in OF_REGISTRY:
            raise without_registry(body)
        try:
            records = records_of(body, EMBEDDED[given], partition)
        except ApiError as error:
            raise hinted(error, given) from None
        await desk.admit(call, records)
        await desk.ready(call.caller, topic, partition)
        # Send in turn, so that records are written in their order; results come together.
        sent = [await sent_record(call, desk, topic, record) for record in records]
    offsets = []
    for record, told_later in zip(records, sent, strict=True):
        told = told_later if isinstance(told_later, ApiError) else await told_later
        call.errors += not isinstance(told, Delivered)
        offsets.append(shown(record, told))
    answer = {"offsets": offsets, "key_schema_id": None, "value_schema_id": None}
    await call.answer(200, answer, content_type=V2)


def hinted(error: ApiError, given: str) -> ApiError:
    """Return an error about data that is no base64 with the cause of most: a missing format."""
    if error.code is not Code.BAD_PAYLOAD or "json.v2" in given or "binary.v2" in given:
        return error
    return ApiError(
        error.code,
        f"{error.message}; with {given} keys and values are base64: for JSON send Content-Type:"
        " application/vnd.kafka.json.v2+json",
    )


def partition_of(call: Call) -> int | None:
    """Return the partition in the path, if there is one."""
    text = call.parameters.get("partition")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(2**31)):
        raise ApiError(Code.NO_PARTITION, f"Partition not found. {text[:80]!r} is not a number")
    return int(text)


def parsed(text: bytes) -> Body:
    try:
        text.decode()
        body = BODIES.decode(text)
    except msgspec.ValidationError as error:
        raise ApiError(Code.UNPROCESSABLE, f"the body is not a list of records: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = why_no_json(text, error)
        raise ApiError(Code.BAD_REQUEST, f"the body is not JSON in UTF-8: {why}") from None
    number_in(body.key_schema_id, "key_schema_id")
    number_in(body.value_schema_id, "value_schema_id")
    return body


def number_in(given: int | str | None, field: str) -> int | None:
    """Return a number of a body, which may be written as text."""
    if given is None:
        return None
    found = whole(given, MAX_NUMBER)
    if found is None:
        raise ApiError(
            Code.UNPROCESSABLE,
            f"{field} is {given!r:.{SHOWN}}: give a number from 0 to {MAX_NUMBER}",
        )
    return found


def without_registry(body: Body) -> ApiError:
    """Return the error for records with a schema, which need a registry."""
    if body.value_schema is None and body.value_schema_id is None:
        return ApiError(
            Code.NO_VALUE_SCHEMA, "Value schema missing: send value_schema or value_schema_id"
        )
    has_keys = any(bytes(record.key) not in {b"", b"null"} for record in body.records)
    if has_keys and body.key_schema is None and body.key_schema_id is None:
        return ApiError(Code.NO_KEY_SCHEMA, "Key schema missing: send key_schema or key_schema_id")
    return ApiError(
        Code.SERIALIZATION_TIMED_OUT,
        "these formats need a schema registry, and this gateway has none: send "
        "application/vnd.kafka.binary.v2+json or application/vnd.kafka.json.v2+json",
    )


def records_of(body: Body, form: Format, partition: int | None) -> Sequence[NewRecord]:
    """Return all records; raise ApiError for the first invalid one, and write none."""
    found = []
    for place, record in enumerate(body.records):
        field = f"records[{place}]"
        own = number_in(record.partition, f"{field}.partition")
        if partition is not None and own not in {None, partition}:
            raise ApiError(
                Code.UNPROCESSABLE,
                f"{field}.partition is {own} and the address says {partition}: leave it out",
            )
        found.append(
            NewRecord(
                value=decoded(record.value, form, f"{field}.value"),
                key=decoded(record.key, form, f"{field}.key"),
                partition=own if partition is None else partition,
            )
        )
    return found


async def sent_record(call: Call, desk: Desk, topic: str, record: NewRecord) -> Outcome:
    try:
        return await desk.sent(call, topic, record)
    except (ApiError, KafkaFailure) as failed:
        return api_error(failed)


def shown(record: NewRecord, told: Delivered | Exception) -> dict[str, object]:
    """Return the result of a record for the answer."""
    if isinstance(told, Delivered):
        return {
            "partition": told.partition,
            "offset": told.offset,
            "error_code": None,
            "error": None,
        }
    error = api_error(told)
    return {
        "partition": record.partition,
        "offset": None,
        "error_code": error.code.number,
        "error": error.message,
    }
