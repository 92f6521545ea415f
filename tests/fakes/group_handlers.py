"""Handlers of groups without a broker: asked in any version, over one shard at a desk.

Requests and answers go through their codecs, so an answer that a version cannot carry fails here as
it would on the wire. What the coordinator would find out about a place is said by the test.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.shard import Answer, Operation
from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.headers import Request
from brokers.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from brokers.protocol.schema import Message
from brokers.server.call import Call
from tests.brokers.replication.parts import Line
from tests.fakes.group_desk import GroupDesk

AWAY = KafkaError(ErrorCode.NOT_COORDINATOR, "the group is elsewhere")
CLIENT = "test"


@dataclass
class GroupHandlers:
    """See the module. Stands for `context.groups` as well."""

    desk: GroupDesk
    is_loading: bool = False
    # Groups that another broker coordinates.
    away: set[str] = field(default_factory=set)
    # Answers that wait until what they are about is safe; None: all of it is at once.
    late: list[Callable[[], None]] | None = None
    is_serving: bool = True

    @property
    def settings(self) -> GroupSettings:
        return self.desk.settings

    def submit(
        self, group_id: str, operation: Operation[GroupShard], done: Callable[[Answer], None]
    ) -> None:
        answer = AWAY if group_id in self.away else self.desk.ask(operation)
        if self.late is None:
            done(answer)
        else:
            self.late.append(lambda: done(answer))

    def look(self, group_id: str, query: Callable[[GroupShard], Any]) -> Any:
        if group_id in self.away:
            raise AWAY
        return query(self.desk.shard)

    def shards(self) -> Iterator[tuple[int, GroupShard]]:
        yield 0, self.desk.shard

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What is asked inside is answered at its end, the last first."""
        late: list[Callable[[], None]] = []
        self.late = late
        yield
        self.late = None
        for answer in reversed(late):
            answer()

    def start(self, module: Any, message: Message, version: int) -> Line:
        """Asks; an answer that comes at once is on the line."""
        assert message.KEY is not None
        line = Line()
        call = Call(Request(APIS[message.KEY], version, 1, CLIENT, memoryview(b""), 0), line, 0.0)
        form = codec(type(message), version)
        body = bytearray(b"".join(bytes(piece) for piece in form.encode(message)))
        context = SimpleNamespace(
            clock=self.desk.clock, groups=self, image=self.desk.image, is_serving=self.is_serving
        )
        answer = module.handle(context, call, form.decode(memoryview(body)))
        if inspect.iscoroutine(answer):
            answer = asyncio.run(answer)
        if answer is not None:
            call.answer(answer)
        return line

    def ask(self, module: Any, message: Message, version: int) -> Any:
        """The answer, which is there at once."""
        (answer,) = self.start(module, message, version).answers
        return answer


def joining(group_id: str, member_id: str, *topics: str) -> ConsumerGroupHeartbeatRequest:
    """The first heartbeat of a member that subscribes to topics by their names."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )
