"""Gives handlers the parts of their broker and the current metadata image.

Holds no rules. Each change that arrives replaces `image` as a whole; a handler reads it once and
keeps that version. Handlers of data check `is_serving` first: a broker that has not registered, or
has not applied the metadata of that moment, leads nothing.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Final

from brokers.clock import Clock
from brokers.cluster.image import ClusterImage
from brokers.cluster.proposals import (
    MAX_CLIENT_ID_CHARS,
    MAX_PROPOSALS,
    Action,
    Outcome,
    Proposal,
)
from brokers.cluster.store import MetadataStore
from brokers.config import BrokerConfig
from brokers.protocol.apis import Api
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.server.call import Call
from brokers.server.metadata_cache import MetadataCache
from brokers.server.metrics import Metrics
from brokers.server.tasks import Tasks

if TYPE_CHECKING:
    from brokers.replication.replicas import Replicas
    from brokers.server.coordinators import GroupCoordinator
    from brokers.server.fetch_sessions import FetchSessions
    from brokers.server.producer_ids import ProducerIds

# How long to wait until an accepted change is applied here before it is answered anyway: it has
# happened, and a link that is down must not turn it into a failure.
MAX_VISIBLE_SECONDS: Final = 1.0


class Context:
    """One for each broker process. Belongs to the event loop."""

    __slots__ = (
        "_applied",
        "_waiting",
        "apis",
        "broker_epoch",
        "broker_id",
        "clock",
        "cluster_id",
        "config",
        "encoded_versions",
        "fetch_sessions",
        "groups",
        "image",
        "is_serving",
        "long_work",
        "loop",
        "metadata_cache",
        "metrics",
        "producer_ids",
        "replicas",
        "store",
    )

    # Set by the creator of this context, since it needs the context itself.
    groups: "GroupCoordinator"
    # Runs what a plain function among the handlers cannot do in its turn; set by dispatch.
    long_work: Tasks

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        store: MetadataStore,
        metrics: Metrics,
        replicas: "Replicas",
        fetch_sessions: "FetchSessions",
        producer_ids: "ProducerIds",
    ) -> None:
        self.config = config
        self.clock = clock
        self.loop = loop
        self.store = store
        self.metrics = metrics
        self.replicas = replicas
        self.fetch_sessions = fetch_sessions
        self.producer_ids = producer_ids
        self.metadata_cache = MetadataCache()
        # Who this broker is, as the store said when it registered.
        self.broker_id = -1
        self.broker_epoch = -1
        self.cluster_id = ""
        self.image = ClusterImage(cluster_id="")
        self.is_serving = False
        # The rows served on the listener, by key; filled in by dispatch.
        self.apis: Mapping[int, Api] = {}
        # The answers to ApiVersions, by version; filled in as they are asked for.
        self.encoded_versions: dict[int, list[Sized]] = {}
        self._applied = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def applied(self, version: int) -> None:
        """Resume waiting callers: all of this broker has applied the image of this version."""
        self._applied = version
        waiting, self._waiting = self._waiting, []
        for wanted, future in waiting:
            if wanted > version:
                self._waiting.append((wanted, future))
            elif not future.done():
                future.set_result(None)

    async def wait_applied(self, version: int) -> None:
        """Wait until this broker has applied the version; the limit of tasks bounds the waiters."""
        if self._applied >= version:
            return
        future = self.loop.create_future()
        entry = (version, future)
        self._waiting.append(entry)
        try:
            await future
        finally:
            if not future.done() or future.cancelled():
                self._waiting = [other for other in self._waiting if other is not entry]

    async def propose(
        self,
        call: Call,
        actions: Sequence[Action],
        *,
        timeout_ms: int,
        validate_only: bool = False,
    ) -> list[Outcome]:
        """Return the outcome of each action, in order, once accepted changes are applied here.

        If the store does not answer in time, or the database refuses for now, the outcome is
        REQUEST_TIMED_OUT, which clients may repeat, with the reason.
        """
        proposals = [
            Proposal(
                id=os.urandom(16),
                action=action,
                actor=call.peer.principal,
                validate_only=validate_only,
                broker_id=self.broker_id,
                broker_epoch=self.broker_epoch,
                client_id=(call.request.client_id or "")[:MAX_CLIENT_ID_CHARS],
                address=call.peer.address,
            )
            for action in actions
        ]
        outcomes: list[Outcome] = []
        try:
            async with asyncio.timeout(max(0, timeout_ms) / 1000):
                for first in range(0, len(proposals), MAX_PROPOSALS):
                    part = proposals[first : first + MAX_PROPOSALS]
                    outcomes += await self.store.propose(part)
        except (TimeoutError, ConnectionError) as error:
            reason = str(error) or f"no answer within {timeout_ms} ms"
            missing = Outcome(
                error=ErrorCode.REQUEST_TIMED_OUT,
                message=f"the cluster's metadata could not be changed: {reason};"
                " it may still happen, so look before you repeat it",
            )
            outcomes += [missing] * (len(proposals) - len(outcomes))
        except KafkaError as error:
            refused = Outcome(error=error.code, message=error.message)
            outcomes += [refused] * (len(proposals) - len(outcomes))
        if not validate_only:
            await self._wait_visible(outcomes)
        return outcomes

    async def _wait_visible(self, outcomes: Sequence[Outcome]) -> None:
        version = max((o.version for o in outcomes if o.error is ErrorCode.NONE), default=0)
        try:
            async with asyncio.timeout(MAX_VISIBLE_SECONDS):
                await self.wait_applied(version)
        except TimeoutError:
            return
