"""Declares the calls that produce records."""

from functools import cached_property
from typing import Final

from gateway.access.operations import Kind, Operation
from gateway.rest.calls import JSON, Call
from gateway.rest.gate import Right
from gateway.rest.produce.batch import produce_batch
from gateway.rest.produce.desk import Desk
from gateway.rest.produce.stream import Streams
from gateway.rest.produce.v2 import RECORDS, V2, produce_v2
from gateway.rest.route import UNPROCESSABLE, Route
from gateway.rest.worker import Worker

TOPIC: Final = "/clusters/{cluster}/topics/{topic}"
PRODUCE: Final = (Right(operation=Operation.PRODUCE, kind=Kind.TOPIC, name="topic"),)
TAG: Final = "Records"
CREATES: Final = (
    "A missing topic is created where brokers and the rights of the caller allow it; else 404."
)
WITHOUT_REGISTRY: Final = {
    408: "The records need a schema registry, which the gateway does not have (40801).",
}


class Room:
    """The shared state of producing in a worker. Created before the loop runs, and used in it."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    @cached_property
    def desk(self) -> Desk:
        return Desk(
            self.worker.deliveries,
            is_draining=lambda: self.worker.is_draining,
            limits=self.worker.callers.limits,
            watch=self.worker.callers.watch,
            budget=self.worker.incoming,
            creation=self.worker.creation,
        )

    @cached_property
    def streams(self) -> Streams:
        return self.worker.held(Streams(self.worker.traffic.opened, ledger=self.worker.ledger))

    async def produce_stream(self, call: Call) -> None:
        await self.streams.produce(call, self.desk)

    async def produce_batch(self, call: Call) -> None:
        await produce_batch(call, self.desk)

    async def produce_v2(self, call: Call) -> None:
        await produce_v2(call, self.desk)


V3_ROUTES: Final = (
    Route(
        method="POST",
        path=f"{TOPIC}/records",
        room=Room,
        handler=Room.produce_stream,
        rights=PRODUCE,
        tag=TAG,
        summary="Produce a record, or a stream of records.",
        says=CREATES
        + " One JSON object per record, one receipt per record in the same order, each with"
        " its own `error_code`; receipts come while the request is still being sent. The status is"
        " 200 once the stream has begun: then records above the caller's rate wait, and none is"
        " refused for it. A record is {partition_id?, headers?, key?, value?, timestamp?};"
        ' keys and values are {"type": "BINARY" | "STRING" | "JSON", "data": …}.',
        takes=(JSON,),
        errors=UNPROCESSABLE,
    ),
    Route(
        method="POST",
        path=f"{TOPIC}/records:batch",
        room=Room,
        handler=Room.produce_batch,
        rights=PRODUCE,
        tag=TAG,
        summary="Produce some records in one call.",
        says=CREATES + " {entries: [{id, …record}]}; the answer lists successes and failures by id."
        " Above the caller's rate the call waits, or is refused whole with 429.",
        status=207,
        takes=(JSON,),
        errors=UNPROCESSABLE,
    ),
)
V2_ROUTES: Final = tuple(
    Route(
        method="POST",
        path=path,
        room=Room,
        handler=Room.produce_v2,
        rights=PRODUCE,
        error_type=V2,
        tag=TAG,
        summary="Produce records.",
        says=CREATES
        + " {records: [{key?, value, partition?}]}; the media type says what keys and values are."
        " The status is 200 also where single records have an `error_code`. Above the caller's rate"
        " the call waits, or is refused whole with 429.",
        takes=RECORDS,
        gives=(V2,),
        errors=WITHOUT_REGISTRY | UNPROCESSABLE,
    )
    for path in ("/topics/{topic}", "/topics/{topic}/partitions/{partition}")
)
