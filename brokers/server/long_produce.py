"""Continues a produce request whose batches need long work, in small steps over later turns.

Knows neither partitions nor rules: it drives the handler, which pauses wherever the next step would
hold the event loop for too long, or waits for a thread. Until it ends, its connection handles no
other request, so that no later batch of the same producer overtakes it.
"""

from collections.abc import Generator
from typing import Final, TypeAlias

from brokers.protocol.messages.produce import ProduceRequest, ProduceResponse
from brokers.replication.recompressor import Recompression
from brokers.server.call import Call
from brokers.server.context import Context

# Copies of records that wait to be inspected or recompressed, of all connections together. A
# hundred batches of the default size; one request alone may have more, since a frame may.
MAX_KEPT_BYTES: Final = 128 * 2**20

# What a handler waits for; None: only for another turn.
Awaited: TypeAlias = Recompression | None
# A handler that pauses between steps; it returns what it would have returned at once.
Steps: TypeAlias = Generator[Awaited, None, ProduceResponse | None]


class OrderAtRisk(Exception):
    """There is no room for a batch of an idempotent producer, which must not be refused alone.

    Its connection is closed instead.
    """


class LongProduce:
    """See the module and `Turning`. `begin` comes before control returns to the event loop."""

    __slots__ = ("_call", "_context", "_kept", "_steps", "has_turn_coming")

    def __init__(self, context: Context, call: Call, steps: Steps) -> None:
        self.has_turn_coming = False
        self._context = context
        self._call = call
        self._steps = steps
        self._kept = 0

    def begin(self, request: ProduceRequest) -> None:
        """Copy the records, which are in the shared receive buffer, and continue in later turns."""
        room = self._context.replicas.room
        for topic in request.topic_data:
            for data in topic.partition_data:
                if data.records is not None:
                    self._kept += len(data.records)
                    # A batch's offset is patched in place, so the copy must be writable.
                    data.records = memoryview(bytearray(data.records))
        room.kept_bytes += self._kept
        self._call.hold()
        self._context.replicas.turns.come(self)

    def take_turn(self) -> bool:
        call = self._call
        if not call.is_open:
            self._end()
            return False
        try:
            awaited = next(self._steps)
        except StopIteration as end:
            self._end()
            if end.value is not None:
                call.answer(end.value)
            call.let_go()
        except OrderAtRisk as error:
            self._end()
            call.disconnect(str(error))
            call.let_go()
        except BaseException:  # any error ends the connection
            self._end()
            call.fail()
            raise
        else:
            if awaited is None:
                return True
            awaited.when_done(self._come)
            call.when_closed(awaited.drop)
        return False

    def _come(self) -> None:
        self._context.replicas.turns.come(self)

    def _end(self) -> None:
        self._steps.close()
        self._context.replicas.room.kept_bytes -= self._kept
