"""Where records are taken."""

from collections.abc import Sequence
from functools import cached_property

from gateway.rest.produce.batch import produce_batch
from gateway.rest.produce.desk import Desk
from gateway.rest.produce.stream import Streams
from gateway.rest.produce.v2 import produce_v2
from gateway.rest.router import Route
from gateway.rest.worker import Worker


class Room:
    """What the calls of a worker share. Made before the loop runs, and used in it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @cached_property
    def desk(self) -> Desk:
        return Desk(self._worker.deliveries, is_draining=lambda: self._worker.is_draining)

    @cached_property
    def streams(self) -> Streams:
        return self._worker.held(Streams(self._worker.traffic.opened))


def v3_routes(worker: Worker) -> Sequence[Route]:
    room = Room(worker)
    topic = "/clusters/{cluster}/topics/{topic}"
    return [
        Route(
            method="POST",
            path=f"{topic}/records",
            handler=lambda call: room.streams.produce(call, room.desk),
        ),
        Route(
            method="POST",
            path=f"{topic}/records:batch",
            handler=lambda call: produce_batch(call, room.desk),
        ),
    ]


def v2_routes(worker: Worker) -> Sequence[Route]:
    room = Room(worker)
    return [
        Route(method="POST", path=path, handler=lambda call: produce_v2(call, room.desk))
        for path in ("/topics/{topic}", "/topics/{topic}/partitions/{partition}")
    ]
