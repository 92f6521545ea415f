"""Routes the calls that produce records."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from gateway.rest.produce.batch import produce_batch
from gateway.rest.produce.desk import Desk
from gateway.rest.produce.stream import Streams
from gateway.rest.produce.v2 import V2, produce_v2
from gateway.rest.router import Route
from gateway.rest.worker import Worker

TOPIC: Final = "/clusters/{cluster}/topics/{topic}"


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

    def v3(self) -> Sequence[Route]:
        return [
            Route(
                method="POST",
                path=f"{TOPIC}/records",
                handler=lambda call: self.streams.produce(call, self.desk),
            ),
            Route(
                method="POST",
                path=f"{TOPIC}/records:batch",
                handler=lambda call: produce_batch(call, self.desk),
            ),
        ]

    def v2(self) -> Sequence[Route]:
        return [
            Route(
                method="POST",
                path=path,
                handler=lambda call: produce_v2(call, self.desk),
                errors=V2,
            )
            for path in ("/topics/{topic}", "/topics/{topic}/partitions/{partition}")
        ]
