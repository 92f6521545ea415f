"""Describes streaming calls, which have no view, for OpenAPI, with their prefix.

A route should have a row here; one without a row is described by method and path only.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.rest.openapi.describe import ERRORS

Operation = dict[str, Any]
PARAMETER: Final = re.compile(r"\{(\w+)\}")
V2: Final = "application/vnd.kafka.v2+json"
RECORDS: Final = tuple(f"application/vnd.kafka.{form}.v2+json" for form in ("binary", "json"))
NDJSON: Final = "application/x-ndjson"
EVENTS: Final = "text/event-stream"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A streaming call: its purpose, and the media types of its input and answers."""

    summary: str
    says: str = ""
    takes: tuple[str, ...] = ()
    answers: tuple[str, ...] = (JSON,)
    status: int = 200
    query: tuple[str, ...] = ()
    # Errors beside those that any call may get.
    errors: tuple[int, ...] = ()

    @property
    def error_type(self) -> str:
        """The media type of errors, which is that of the version."""
        return V2 if {V2, *RECORDS} & {*self.takes, *self.answers} else JSON


ERRORS_OF_SOME: Final = {
    408: "The records need a schema registry, which the gateway does not have (40801).",
    409: "The consumer exists (40902), or is not in the state for this call (40901, 40903).",
    422: "A field of the body has a value that is not taken; the codes begin with 422, or 40001.",
}
CONSUMERS: Final = "/consumers/"
OF_CONSUMERS: Final = (409, 422)
CREATES: Final = (
    "A missing topic is created where brokers and the rights of the caller allow it; else 404."
)
PRODUCE: Final = Row(
    summary="Produce a record, or a stream of records.",
    says=CREATES
    + " One JSON object per record, one receipt per record in the same order, each with"
    " its own `error_code`; receipts come while the request is still being sent. The status is 200"
    " once the stream has begun: then records above the caller's rate wait, and none is refused for"
    " it. A record is {partition_id?, headers?, key?, value?, timestamp?};"
    ' keys and values are {"type": "BINARY" | "STRING" | "JSON", "data": …}.',
    takes=(JSON,),
    errors=(422,),
)
BATCH: Final = Row(
    summary="Produce some records in one call.",
    says=CREATES + " {entries: [{id, …record}]}; the answer lists successes and failures by id."
    " Above the caller's rate the call waits, or is refused whole with 429.",
    takes=(JSON,),
    status=207,
    errors=(422,),
)
PRODUCE_V2: Final = Row(
    summary="Produce records.",
    says=CREATES
    + " {records: [{key?, value, partition?}]}; the media type says what keys and values are."
    " The status is 200 also where single records have an `error_code`. Above the caller's rate the"
    " call waits, or is refused whole with 429.",
    takes=RECORDS,
    answers=(V2,),
    errors=(408, 422),
)
# By method and path below the prefix, without parameter names.
ROWS: Final[Mapping[tuple[str, str], Row]] = {
    ("POST", "/clusters/{}/topics/{}/records"): PRODUCE,
    ("POST", "/clusters/{}/topics/{}/records:batch"): BATCH,
    ("POST", "/topics/{}"): PRODUCE_V2,
    ("POST", "/topics/{}/partitions/{}"): PRODUCE_V2,
    ("POST", "/consumers/{}"): Row(
        summary="Create a consumer instance of a group.", takes=(V2,), answers=(V2,)
    ),
    ("DELETE", "/consumers/{}/instances/{}"): Row(
        summary="Delete a consumer instance.", status=204, takes=(V2,), answers=(V2,)
    ),
    ("POST", "/consumers/{}/instances/{}/subscription"): Row(
        summary="Subscribe to topics, or to a pattern.", status=204, takes=(V2,), answers=(V2,)
    ),
    ("GET", "/consumers/{}/instances/{}/subscription"): Row(
        summary="Show what an instance is subscribed to.", answers=(V2,)
    ),
    ("DELETE", "/consumers/{}/instances/{}/subscription"): Row(
        summary="Unsubscribe from all topics.", status=204, answers=(V2,)
    ),
    ("POST", "/consumers/{}/instances/{}/assignments"): Row(
        summary="Assign partitions by hand.", status=204, takes=(V2,), answers=(V2,)
    ),
    ("GET", "/consumers/{}/instances/{}/assignments"): Row(
        summary="Show the partitions that an instance reads.", answers=(V2,)
    ),
    ("GET", "/consumers/{}/instances/{}/records"): Row(
        summary="Fetch records.", answers=RECORDS, query=("timeout", "max_bytes")
    ),
    ("POST", "/consumers/{}/instances/{}/offsets"): Row(
        summary="Commit offsets: those in the body, or those of all fetched records.",
        takes=(V2,),
        answers=(V2,),
    ),
    ("GET", "/consumers/{}/instances/{}/offsets"): Row(
        summary="Show committed offsets; the partitions are in the body.",
        takes=(V2,),
        answers=(V2,),
    ),
    ("POST", "/consumers/{}/instances/{}/positions"): Row(
        summary="Seek to offsets.", status=204, takes=(V2,), answers=(V2,)
    ),
    ("POST", "/consumers/{}/instances/{}/positions/beginning"): Row(
        summary="Seek to the beginning.", status=204, takes=(V2,), answers=(V2,)
    ),
    ("POST", "/consumers/{}/instances/{}/positions/end"): Row(
        summary="Seek to the end.", status=204, takes=(V2,), answers=(V2,)
    ),
    ("GET", "/topics/{}/records"): Row(
        summary="Read records of a topic without a group: once, or as a stream.",
        says="As JSON in one answer, or for as long as the caller stays as NDJSON or events, "
        "which continue after `Last-Event-ID`.",
        answers=(JSON, NDJSON, EVENTS),
        query=("partition", "from", "max", "max_bytes", "wait", "format"),
    ),
    ("GET", "/"): Row(
        summary="Stream records of topics as server-sent events, until the caller disconnects.",
        says="`topics` names them, with commas between, or `pattern` means those that the caller "
        "may read; continues after `Last-Event-ID`.",
        answers=(EVENTS,),
        query=("topics", "pattern", "from", "max", "wait", "format"),
    ),
}


def operation(method: str, prefix: str, address: str, error: Operation) -> Operation:
    """Return the description of one call, whose errors have the schema `error`."""
    row = ROWS.get(
        (method, PARAMETER.sub("{}", address)), Row(summary=f"{method} {prefix}{address}.")
    )
    some = OF_CONSUMERS if address.startswith(CONSUMERS) else row.errors
    errors = {**ERRORS, **{status: ERRORS_OF_SOME[status] for status in some}}
    words = re.findall(r"\w+", f"{prefix}{address}")
    body: Operation = {"content": {kind: {"schema": {}} for kind in row.takes}}
    done: Operation = {"description": "Done."}
    if row.status != 204:
        done["content"] = {kind: {"schema": {}} for kind in row.answers}
    return {
        "operationId": "_".join(["stream", method.lower(), *words]),
        "summary": row.summary,
        "description": row.says or row.summary,
        "tags": ["Records"],
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in PARAMETER.findall(address)
            ),
            *({"name": name, "in": "query", "schema": {"type": "string"}} for name in row.query),
        ],
        **({"requestBody": body} if row.takes else {}),
        "responses": {
            str(row.status): done,
            **{
                str(status): {"description": said, "content": {row.error_type: {"schema": error}}}
                for status, said in errors.items()
            },
        },
    }
