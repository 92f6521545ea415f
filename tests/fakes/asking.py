"""A broker's handlers without its sockets: ask one in any version, and read what a client reads.

Requests and answers go through their codecs, so an answer that a version cannot carry fails here as
it would on the wire. The metadata behind the handlers is the twin's, and what they propose is seen
at once.
"""

import asyncio
from collections.abc import Mapping, Sequence, Sized
from typing import Any, Protocol, Self, cast

from brokers.cluster.proposals import Outcome, Proposal
from brokers.cluster.store import MetadataStore
from brokers.config import BrokerConfig
from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.headers import Request
from brokers.protocol.schema import Message
from brokers.server.call import Call, Closing
from brokers.server.context import Context
from brokers.server.metrics import Metrics
from brokers.server.peers import Peer
from brokers.server.served_api import Served
from brokers.server.tasks import Tasks
from tests.fakes.clock import ManualClock
from tests.fakes.twin import Twin

LOG_DIR = "/var/lib/samsa-test"
# Far above what any answer takes.
WAIT_SECONDS = 60.0


class Handler(Protocol):
    SERVED: Served

    @property
    def handle(self) -> Any: ...


class SeenAtOnce:
    """The door to a twin of a broker that has applied every change when a proposal is answered."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.context: Context | None = None
        self.proposals: list[Proposal] = []
        # Stands for a link that is down or a store that refuses everything.
        self.fault: Exception | None = None

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        self.proposals += proposals
        if self.fault is not None:
            raise self.fault
        outcomes = self.twin.decide(proposals)
        self.follow()
        return outcomes

    def follow(self) -> None:
        assert self.context is not None
        self.context.image = self.twin.image
        self.context.applied(self.twin.image.version)


class Line:
    """The connection of one call, which keeps what was sent."""

    def __init__(self) -> None:
        self.peer = Peer(address="127.0.0.1")
        self.is_closed = False
        self.answers: list[Message | bytes] = []
        self.reasons: list[str] = []
        self.ended = asyncio.Event()

    def watch(self, call: Closing) -> None:
        """Nobody hangs up on this line."""

    def hold(self) -> None:
        """There is no later request."""

    def let_go(self) -> None:
        """There is no later request."""

    def unwatch(self, call: Closing) -> None:
        """Nobody hangs up on this line."""

    def answered(self, call: Call, message: Message) -> None:
        self.answers.append(message)
        self.ended.set()

    def answered_encoded(self, call: Call, buffers: list[Sized]) -> None:
        self.answers.append(b"".join(cast("list[bytes]", buffers)))
        self.ended.set()

    def skipped(self, call: Call) -> None:
        raise AssertionError("the call was answered with silence")

    def failed(self) -> None:
        self.disconnect("failed")

    def disconnect(self, reason: str) -> None:
        self.reasons.append(reason)
        self.ended.set()


class Desk:
    """One broker of a twin's cluster, which answers what it is asked. Used as a context manager."""

    def __init__(self, *, brokers: int = 1, defaults: Mapping[str, str] | None = None) -> None:
        self.twin = Twin()
        self.store = SeenAtOnce(self.twin)
        self._runner = asyncio.Runner()
        self.context = self._context(defaults or {})
        registered = [
            self.twin.register_now(host=f"broker-{number}.test", port=9090 + number)
            for number in range(1, brokers + 1)
        ]
        self.context.broker_id = registered[0].broker_id
        self.context.broker_epoch = registered[0].broker_epoch
        self.context.cluster_id = self.twin.cluster_id
        self.context.is_serving = True
        self.context.long_work = Tasks(lambda call, _error: call.fail())
        self.store.context = self.context
        self.follow()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._runner.close()

    def _context(self, defaults: Mapping[str, str]) -> Context:
        nothing: Any = None
        return Context(
            config=BrokerConfig(agent_socket="", log_dir=LOG_DIR, defaults=defaults),
            clock=ManualClock(),
            loop=self._runner.get_loop(),
            store=cast("MetadataStore", self.store),
            metrics=Metrics(),
            replicas=nothing,
            fetch_sessions=nothing,
            producer_ids=nothing,
        )

    def follow(self) -> None:
        """The broker applies what happened to the twin meanwhile."""
        self.store.follow()

    def ask(self, handler: Handler, version: int, request: Message) -> Any:
        """What a client that sent the request in this version reads."""
        api = APIS[handler.SERVED.key]
        body = b"".join(codec(type(request), version).encode(request))
        wire = Request(api, version, 1, "test", memoryview(body), 0)
        line = Line()
        call = Call(wire, line, 0.0)
        decoded = codec(api.request, version).decode(body)
        self._runner.run(self._handled(handler, call, decoded, line))
        assert not line.reasons, line.reasons
        (answer,) = line.answers
        if not isinstance(answer, bytes):
            answer = b"".join(codec(api.response, version).encode(answer))
        return codec(api.response, version).decode(answer)

    async def _handled(self, handler: Handler, call: Call, request: Message, line: Line) -> None:
        async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
            self.context.long_work.group = group
            answer = handler.handle(self.context, call, request)
            if asyncio.iscoroutine(answer):
                answer = await answer
            if answer is not None:
                call.answer(answer)
            await line.ended.wait()
