"""Creates the topics that calls write to, where the brokers and the rights of the caller allow it.

Kafka's clients create a missing topic by asking for it, if `auto.create.topics.enable` is true. The
gateway has rights that its callers lack, so it creates topics for them by itself, and its own
clients create none.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from gateway.access import audit
from gateway.access.callers import Caller
from gateway.access.operations import Kind, Operation
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.kept_topics import INTERNAL_PREFIX
from gateway.kafka.known_topics import NO_TOPIC
from gateway.kafka.pool import Pool
from gateway.kafka.values import CLUSTER_DEFAULT, NewTopic, ResourceKind
from gateway.rest.codes import ApiError, Code

T = TypeVar("T")
AUTO_CREATE: Final = "auto.create.topics.enable"
EXISTS: Final = "TOPIC_ALREADY_EXISTS"
# What brokers accept; the client library would cut a name at a NUL.
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
# Topics that one caller, and all callers, create in a minute at one worker: a program has some tens
# of topics, and a loop over invented names must not fill the cluster.
MAX_CREATED_EACH: Final = 60
MAX_CREATED: Final = 300
WINDOW_S: Final = 60.0
# Creations that wait for the one before, which takes some ten milliseconds.
MAX_WAITING: Final = 50
# How long the answer of the brokers about their config is used.
KNOWN_S: Final = 10.0
# How long a broker may take to know a topic that another one has created.
VISIBLE_S: Final = 5.0
LOOK_S: Final = 0.05


class TopicCreation:
    """The creations of one event loop. A worker holds it: drain and close it."""

    def __init__(
        self,
        admins: Pool,
        *,
        look_up: Callable[[str], Awaitable[object]],
        cluster_id: Callable[[], str],
        client_id: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admins = admins
        # Returns if a topic exists; raises the failure of a missing one.
        self._look_up = look_up
        self._cluster_id = cluster_id
        self._client_id = client_id
        self._monotonic = monotonic
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="topic-creation")
        self._creating: dict[str, asyncio.Task[None]] = {}
        self._window_at = 0.0
        self._created: Counter[str] = Counter()
        self._is_enabled = False
        self._asked_at = -KNOWN_S

    async def require(self, caller: Caller, topic: str) -> None:
        """Raise the error of a missing topic unless it may be created for a caller."""
        why_not = self._why_not(caller, topic)
        if why_not is None and not await self._enabled():
            why_not = (
                f"brokers create no topics by themselves ({AUTO_CREATE}=false): create it by"
                f" `./samsa topics create {topic}`"
            )
        if why_not is not None:
            raise missing(topic, why_not)

    async def create(self, caller: Caller, topic: str) -> None:
        """Create a missing topic with the defaults of the brokers, and wait until it is known.

        Raises ApiError if it may not be created, and KafkaFailure if brokers refuse it.
        """
        creating = self._creating.get(topic)
        if creating is None:
            await self.require(caller, topic)
            # Another call may have begun meanwhile.
            creating = self._creating.get(topic) or self._begin(caller, topic)
        elif (why_not := self._why_not(caller, topic)) is not None:
            raise missing(topic, why_not)
        # A caller that leaves must not cancel the creation for the others.
        await asyncio.shield(creating)

    async def create_all(self, caller: Caller, topics: Sequence[str]) -> None:
        """Create those of a subscription's topics that are missing and may be created.

        The others stay missing: their group reads them as soon as they exist.
        """
        allowed = [topic for topic in topics if self._why_not(caller, topic) is None]
        if not allowed:
            return
        # A subscription to missing topics is no error.
        with suppress(ApiError, KafkaFailure):
            there = await self._in_thread(lambda: self._find(allowed))
            for topic in allowed:
                if topic not in there:
                    await self.create(caller, topic)

    def _why_not(self, caller: Caller, topic: str) -> str | None:
        """Return why a caller may not create a topic by naming it; None if it may."""
        by_hand = f"create it by `./samsa topics create {topic}`"
        if not NAME.fullmatch(topic):
            return "a name has 1 to 249 letters, digits, dots, underscores and hyphens: correct it"
        if topic.startswith(INTERNAL_PREFIX):
            return f"names that begin with {INTERNAL_PREFIX} are internal: {by_hand}"
        decision = caller.decide(Operation.CREATE_TOPICS, Kind.TOPIC, self._cluster_id(), topic)
        if decision.is_allowed:
            return None
        return f"{by_hand}, or {caller.remedy(Operation.CREATE_TOPICS, Kind.TOPIC, topic)}"

    async def _enabled(self) -> bool:
        if self._monotonic() - self._asked_at >= KNOWN_S:
            self._is_enabled = await self._in_thread(self._ask_config)
            self._asked_at = self._monotonic()
        return self._is_enabled

    def _begin(self, caller: Caller, topic: str) -> asyncio.Task[None]:
        """Start a creation. Raises ApiError beyond a limit."""
        self._count(caller)
        creating = asyncio.create_task(self._create(caller, topic))
        self._creating[topic] = creating
        creating.add_done_callback(lambda done: self._created_one(topic, done))
        return creating

    def _count(self, caller: Caller) -> None:
        now = self._monotonic()
        if now - self._window_at >= WINDOW_S:
            self._window_at = now
            self._created.clear()
        left_s = max(1, round(WINDOW_S - (now - self._window_at)))
        if len(self._creating) >= MAX_WAITING:
            raise ApiError(
                Code.UNAVAILABLE,
                f"{len(self._creating)} topics are being created: send again",
                retry_after_s=1,
            )
        if self._created[caller.key] >= MAX_CREATED_EACH:
            raise ApiError(
                Code.TOO_MANY,
                f"{caller.key} has created {MAX_CREATED_EACH} topics in a minute by naming them:"
                " wait, or create them by `./samsa topics create`",
                retry_after_s=left_s,
            )
        if self._created.total() >= MAX_CREATED:
            raise ApiError(
                Code.UNAVAILABLE,
                f"calls have created {MAX_CREATED} topics in a minute by naming them: wait, or"
                " create them by `./samsa topics create`",
                retry_after_s=left_s,
            )
        self._created[caller.key] += 1

    def _created_one(self, topic: str, done: asyncio.Task[None]) -> None:
        self._creating.pop(topic, None)
        if not done.cancelled():
            # All callers may have left, so retrieve the exception here.
            done.exception()

    async def _create(self, caller: Caller, topic: str) -> None:
        if await self._in_thread(lambda: self._ask_creation(caller, topic)):
            audit.record(
                "rest.topic_created", actor=audit.Actor(name=caller.principal), subject=topic
            )
        end = self._monotonic() + VISIBLE_S
        while True:
            try:
                await self._look_up(topic)
            except KafkaFailure as failed:
                if failed.name != NO_TOPIC or self._monotonic() >= end:
                    raise
                await asyncio.sleep(LOOK_S)
            else:
                return

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # --- in the thread -----------------------------------------------------------------------

    def _ask_config(self) -> bool:
        with self._admins.borrowed() as clients:
            broker = str(clients.admin.brokers()[0])
            configs = clients.admin.configs(ResourceKind.BROKER, broker)
        return any(one.key == AUTO_CREATE and one.value == "true" for one in configs)

    def _ask_creation(self, caller: Caller, topic: str) -> bool:
        """Create a topic; False if another client was faster."""
        asked = NewTopic(name=topic, partitions=CLUSTER_DEFAULT, replication_factor=CLUSTER_DEFAULT)
        # The audit of the brokers has the client id.
        with self._admins.borrowed(f"{self._client_id} {caller.key}".strip()) as clients:
            try:
                clients.admin.create([asked])
            except KafkaFailure as failed:
                if failed.name != EXISTS:
                    raise
                return False
        return True

    def _find(self, topics: Sequence[str]) -> set[str]:
        with self._admins.borrowed() as clients:
            return set(clients.admin.find(topics))

    # --- life --------------------------------------------------------------------------------

    def drain(self) -> None:
        """Do nothing: creations are short."""

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def missing(topic: str, step: str) -> ApiError:
    return ApiError(
        Code.NO_TOPIC,
        f"topic {topic[:249]}: the cluster does not know it (UNKNOWN_TOPIC_OR_PARTITION); {step}",
    )
