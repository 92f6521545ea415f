"""A metadata store in memory, with faults on request.

Passes the contract of the ORM store, so a test may use it instead. Several brokers attach to one
twin; each has its own door, whose link can be cut, and which can be killed. Belongs to one event
loop at a time.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from brokers.clock import Clock
from brokers.cluster import levels, plans
from brokers.cluster.apply import ImageDraft
from brokers.cluster.changes import (
    BrokerChanged,
    BrokerRemoved,
    Change,
    ConfigsChanged,
    PartitionChanged,
    PartitionsAdded,
    Record,
    TopicCreated,
    TopicRemoved,
)
from brokers.cluster.decisions import decide
from brokers.cluster.image import (
    Broker,
    ClusterImage,
    Position,
    ResourceType,
    Topic,
)
from brokers.cluster.plans import Plan, make_plan
from brokers.cluster.proposals import (
    MAX_PROPOSALS,
    Action,
    CreateTopic,
    Outcome,
    ProducerIdsResult,
    Proposal,
    Subject,
    TopicResult,
)
from brokers.cluster.store import MetadataRegressed, Registered, Registration, Update
from brokers.cluster.topic_names import collision_key
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.fakes.clock import ManualClock

# The same number as in an agent.
CHANGES_KEPT: Final = 10_000
# A proposal is repeated within its deadline, or never: minutes of the busiest cluster.
OUTCOMES_KEPT: Final = 10_000
OPERATOR: Final = "User:operator"

# Distinguishes the ids of different twins.
_NUMBERS: Final = count(1)


class Twin:
    """See the module. It is a store for one broker by itself; for more, `attach` one door each."""

    def __init__(
        self,
        *,
        cluster_id: str = "twin-cluster-0000000000",
        clock: Clock | None = None,
        changes_kept: int = CHANGES_KEPT,
    ) -> None:
        self.cluster_id = cluster_id
        self.image = ClusterImage(cluster_id=cluster_id)
        # While it is away, calls that need the database fail and no change is seen.
        self.is_away = False
        self.metadata_level = levels.FIRST_LEVEL
        self._clock = clock or ManualClock()
        self._changes_kept = changes_kept
        self._changes: dict[int, Change] = {}
        self._outcomes: dict[bytes, Outcome] = {}
        self._counts = _Counts()
        # Versions that plans expect and an image lacks: the last change of brokers and configs.
        self._versions: dict[tuple[Subject, str], int] = {}
        self._number = next(_NUMBERS)
        self._ids = 0
        self._moved: list[asyncio.Future[None]] = []
        self._incarnations: dict[int, bytes] = {}
        # Incarnations that are alive, whether their links are up or not.
        self._alive: dict[int, bytes] = {}
        # The metadata levels that brokers support.
        self._levels: dict[int, int] = {}
        self._door = Door(self)

    # For tests.

    def attach(self) -> "Door":
        """Return the MetadataStore of one more broker."""
        return Door(self)

    def register_now(
        self,
        *,
        broker_id: int = -1,
        host: str = "127.0.0.1",
        port: int = 9092,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> Registered:
        """Register and unfence a broker, without waiting."""
        registered = self.begin_session(
            Registration(
                incarnation=self._new_id(),
                host=host,
                port=port,
                broker_id=broker_id,
                rack=rack,
                metadata_level=self.metadata_level,
            )
        )
        if not is_fenced:
            self.set_fenced(registered.broker_id, is_fenced=False)
        return registered

    def propose_now(self, *actions: Action) -> list[Outcome]:
        """Do an operator's actions, at once."""
        return self.decide(
            [Proposal(id=self._new_id(), action=action, actor=OPERATOR) for action in actions]
        )

    def preview(self, actions: Sequence[Action]) -> Plan:
        """Return the effects of actions, with proposals that apply while nothing has moved."""
        draft = ImageDraft(self.image)
        return make_plan(
            _PlanView(draft, self._counts.copy()),
            actions,
            versions=self._versions_of,
            level=self.metadata_level,
            cluster_id=self.cluster_id,
            version=self.image.version,
            now_ms=self._clock.now_ms(),
            new_id=self._new_id,
        )

    def create_topic(
        self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> Topic:
        """Create a topic and return it; raise the outcome's KafkaError."""
        action = CreateTopic(
            name=name, partitions=partitions, configs=tuple((configs or {}).items())
        )
        (outcome,) = self.propose_now(action)
        if outcome.error:
            raise KafkaError(outcome.error, outcome.message)
        assert isinstance(outcome.result, TopicResult)
        return self.image.topics[name]

    def kill(self, broker_id: int) -> None:
        """Kill the broker: end its session and fence it."""
        self._alive.pop(broker_id, None)
        self.set_fenced(broker_id, is_fenced=True)

    def forget_changes(self) -> None:
        """Drop all changes, so that readers behind must load the whole image."""
        self._changes.clear()

    def set_back(self, image: ClusterImage, *, next_producer_id: int = 0) -> None:
        """Go back to an earlier state, like a database that is restored from an old copy."""
        self._counts = _Counts()
        self._counts.next_producer_id = next_producer_id
        for topic in image.topics.values():
            self._counts.note(TopicCreated(topic.name, topic.id, topic.partitions), None)
        self.image = image
        self._changes.clear()
        self._versions.clear()
        self.wake()

    def append(self, records: Iterable[Record]) -> Change:
        """Number a change and publish it."""
        taken = tuple(records)
        draft = ImageDraft(self.image)
        self._take(draft, taken)
        return self._commit(draft, taken)

    def set_fenced(self, broker_id: int, *, is_fenced: bool) -> None:
        broker = self.image.brokers[broker_id]
        if broker.is_fenced != is_fenced:
            self.append([BrokerChanged(replace(broker, is_fenced=is_fenced))])

    # For doors.

    async def register(self, registration: Registration) -> Registered:
        return await self._door.register(registration)

    def follow(self, after: Position) -> AsyncIterator[Update]:
        return self._door.follow(after)

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        return await self._door.propose(proposals)

    def applied(self, version: int) -> None:
        self._door.applied(version)

    def begin_session(self, registration: Registration) -> Registered:
        if registration.cluster_id not in {"", self.cluster_id}:
            raise KafkaError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"the log dir belongs to cluster {registration.cluster_id}, this is cluster "
                f"{self.cluster_id}",
            )
        if registration.position != Position():
            self.next_update(registration.position)
        broker_id = self._id_of(registration)
        alive = self._alive.get(broker_id)
        if alive is not None and alive != registration.incarnation:
            raise KafkaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION, f"broker {broker_id} is running already"
            )
        self._take_level(broker_id, registration)
        self._alive[broker_id] = registration.incarnation
        above = registration.highest_producer_id + 1
        self._counts.next_producer_id = max(self._counts.next_producer_id, above)
        if self._incarnations.get(broker_id) != registration.incarnation:
            self._incarnations[broker_id] = registration.incarnation
            self.append([BrokerChanged(self._registered(broker_id, registration))])
        epoch = self.image.brokers[broker_id].epoch
        return Registered(
            broker_id=broker_id, broker_epoch=epoch, cluster_id=self.cluster_id, version=epoch
        )

    def decide(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        """Decide on a call as one transaction and one change."""
        assert len(proposals) <= MAX_PROPOSALS, f"{len(proposals)} proposals in one call"
        draft = ImageDraft(self.image)
        records: list[Record] = []
        outcomes = [self._outcome(proposal, draft, records) for proposal in proposals]
        if records:
            self._commit(draft, tuple(records))
        outcomes = [replace(o, version=o.version or self.image.version) for o in outcomes]
        for proposal, outcome in zip(proposals, outcomes, strict=True):
            if not outcome.error and not proposal.validate_only:
                self._outcomes.setdefault(proposal.id, outcome)
        while len(self._outcomes) > OUTCOMES_KEPT:
            self._outcomes.pop(next(iter(self._outcomes)))
        return outcomes

    def next_update(self, after: Position) -> Update | None:
        """Return the update after a position; None if there is none yet."""
        known = self._changes.get(after.version)
        is_ahead = after.version > self.image.version
        is_other = after.version == self.image.version and after != self.image.position
        if is_ahead or is_other or (known is not None and known.position != after):
            raise MetadataRegressed(after, self.image.position)
        if after == self.image.position:
            return None
        if known is None and after != Position():
            return self.image
        return self._changes.get(after.version + 1, self.image)

    def wake(self) -> None:
        """Wake all waiting readers."""
        moved, self._moved = self._moved, []
        for future in moved:
            # Its reader may be gone.
            if not future.done():
                future.set_result(None)

    async def moved(self) -> None:
        """Wait for a change, or for a link to be cut."""
        future = asyncio.get_running_loop().create_future()
        self._moved.append(future)
        await future

    def _new_id(self) -> bytes:
        # Unique in this process, even across a set-back of this twin.
        self._ids += 1
        return self._number.to_bytes(8, "big") + self._ids.to_bytes(8, "big")

    def _id_of(self, registration: Registration) -> int:
        if registration.broker_id >= 0:
            return registration.broker_id
        for broker_id, incarnation in self._incarnations.items():
            if incarnation == registration.incarnation:
                return broker_id
        if registration.wanted_id > 0 and registration.wanted_id not in self.image.brokers:
            return registration.wanted_id
        return max(self.image.brokers, default=0) + 1

    def _take_level(self, broker_id: int, registration: Registration) -> None:
        """Raise the metadata level to what every broker supports; refuse one that supports less."""
        known = registration.metadata_level
        levels.check_member(f"broker {broker_id}", known, self.metadata_level)
        self._levels[broker_id] = known
        level = min(levels.KNOWN_LEVEL, *self._levels.values())
        self.metadata_level = max(self.metadata_level, level)

    def _registered(self, broker_id: int, registration: Registration) -> Broker:
        return Broker(
            id=broker_id,
            epoch=self.image.version + 1,
            host=registration.host,
            port=registration.port,
            rack=registration.rack,
            inspection_port=registration.inspection_port,
            agent_id="twin",
            boot_id=registration.boot_id,
        )

    def _outcome(self, proposal: Proposal, draft: ImageDraft, records: list[Record]) -> Outcome:
        done = self._outcomes.get(proposal.id)
        if done is not None:
            return done
        try:
            self._check_proposer(proposal)
            levels.check_action(proposal.action, self.metadata_level)
            self._check_expects(proposal)
            decision = decide(
                _View(draft, self._counts),
                proposal.action,
                now_ms=self._clock.now_ms(),
                new_topic_id=self._new_id,
            )
        except KafkaError as refusal:
            return Outcome(error=refusal.code, message=refusal.message)
        if not proposal.validate_only:
            self._take(draft, decision.records)
            records += decision.records
            if isinstance(decision.result, ProducerIdsResult):
                taken = decision.result.first + decision.result.count
                self._counts.next_producer_id = taken
        return Outcome(result=decision.result)

    def _check_expects(self, proposal: Proposal) -> None:
        """Compare with the state when the call began: its own effects do not count."""
        if not proposal.expects:
            return
        levels.check_expects(self.metadata_level)
        found = self._versions_of([(each.subject, each.name) for each in proposal.expects])
        if moved := plans.moved(proposal.expects, found):
            raise plans.outdated(moved, {})

    def _versions_of(
        self, subjects: Sequence[tuple[Subject, str]]
    ) -> Mapping[tuple[Subject, str], int]:
        found = {key: self._versions.get(key, 0) for key in subjects}
        for subject, name in subjects:
            if subject is Subject.TOPIC:
                topic = self.image.topics.get(name)
                found[subject, name] = 0 if topic is None else topic.version
        return found

    def _check_proposer(self, proposal: Proposal) -> None:
        if proposal.broker_id < 0:
            return
        broker = self.image.brokers.get(proposal.broker_id)
        if broker is None:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {proposal.broker_id} is not registered"
            )
        if broker.epoch != proposal.broker_epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"broker {broker.id} has epoch {broker.epoch}, the proposal says "
                f"{proposal.broker_epoch}",
            )
        if broker.is_fenced:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker.id} is fenced")

    def _take(self, draft: ImageDraft, records: Iterable[Record]) -> None:
        for record in records:
            topic = draft.topic(record.name) if isinstance(record, TopicRemoved) else None
            self._counts.note(record, topic)
            draft.add(record, self.image.version + 1)

    def _commit(self, draft: ImageDraft, records: tuple[Record, ...]) -> Change:
        position = Position(self.image.version + 1, self._new_id())
        change = Change(position=position, records=records)
        self.image = draft.image(position)
        for record in records:
            self._note_version(record, position.version)
        self._changes[position.version] = change
        self._changes.pop(position.version - self._changes_kept, None)
        self.wake()
        return change

    def _note_version(self, record: Record, version: int) -> None:
        match record:
            case BrokerChanged():
                self._versions[Subject.BROKER, str(record.broker.id)] = version
            case BrokerRemoved():
                self._versions.pop((Subject.BROKER, str(record.broker_id)), None)
            case ConfigsChanged(resource_type=ResourceType.TOPIC):
                self._versions[Subject.TOPIC_CONFIGS, record.name] = version
            case ConfigsChanged():
                self._versions[Subject.BROKER_CONFIGS, record.name] = version
            case TopicRemoved():
                self._versions.pop((Subject.TOPIC_CONFIGS, record.name), None)
            case TopicCreated() | PartitionsAdded() | PartitionChanged():
                # The image keeps the versions of topics.
                pass


class Door:
    """One broker's MetadataStore. `cut` breaks its link, `register` restores it."""

    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        self._registered: Registered | None = None
        self._is_cut = False

    async def register(self, registration: Registration) -> Registered:
        self._check_database()
        self._registered = self._twin.begin_session(registration)
        self._is_cut = False
        return self._registered

    async def follow(self, after: Position) -> AsyncIterator[Update]:
        position = after
        if after == Position():
            self._check_link()
            position = self._twin.image.position
            yield self._twin.image
        while True:
            self._check_link()
            update = None if self._twin.is_away else self._twin.next_update(position)
            if update is None:
                await self._twin.moved()
                continue
            position = update.position
            yield update

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        self._check_link()
        self._check_database()
        return self._twin.decide(proposals)

    def applied(self, version: int) -> None:
        mine = self._registered
        if mine is None or self._is_cut or version < mine.version:
            return
        broker = self._twin.image.brokers.get(mine.broker_id)
        if broker is not None and broker.epoch == mine.broker_epoch:
            self._twin.set_fenced(broker.id, is_fenced=False)

    def cut(self) -> None:
        """Cut the link; the broker lives."""
        self._is_cut = True
        self._twin.wake()

    def kill(self) -> None:
        """Kill the broker."""
        self.cut()
        if self._registered is not None:
            self._twin.kill(self._registered.broker_id)

    def _check_link(self) -> None:
        if self._is_cut:
            raise ConnectionError("the link to the twin was cut")

    def _check_database(self) -> None:
        if self._twin.is_away:
            raise ConnectionError("the twin is away")


class _Counts:
    """Counts that an image lacks: colliding names, partitions, producer ids."""

    __slots__ = ("alike", "next_producer_id", "partitions")

    def __init__(self) -> None:
        self.alike: dict[str, list[str]] = {}
        self.partitions = 0
        self.next_producer_id = 0

    def copy(self) -> "_Counts":
        """Return a copy, which can follow a plan while the original stays unchanged."""
        other = _Counts()
        other.alike = {key: list(names) for key, names in self.alike.items()}
        other.partitions = self.partitions
        other.next_producer_id = self.next_producer_id
        return other

    def note(self, record: Record, topic: Topic | None) -> None:
        """Follow a record; `topic` is the topic before its removal."""
        match record:
            case TopicCreated():
                self.alike.setdefault(collision_key(record.name), []).append(record.name)
                self.partitions += len(record.partitions)
            case PartitionsAdded():
                self.partitions += len(record.partitions)
            case TopicRemoved() if topic is not None:
                self.alike[collision_key(record.name)].remove(record.name)
                self.partitions -= len(topic.partitions)
            case _:
                pass


class _View:
    """The View of a twin while it decides on one call."""

    def __init__(self, draft: ImageDraft, counts: _Counts) -> None:
        self._counts = counts
        self.brokers = draft.brokers
        self.topic = draft.topic
        self.topic_by_id = draft.topic_by_id
        self.configs_of = draft.configs_of

    def colliding(self, name: str) -> str | None:
        alike = self._counts.alike.get(collision_key(name), ())
        return next((other for other in alike if other != name), None)

    def partition_count(self) -> int:
        return self._counts.partitions

    def next_producer_id(self) -> int:
        return self._counts.next_producer_id


class _PlanView(_View):
    """The same for making a plan; what it follows stays private."""

    def __init__(self, draft: ImageDraft, counts: _Counts) -> None:
        super().__init__(draft, counts)
        self._draft = draft

    def follow(self, records: Iterable[Record]) -> None:
        for record in records:
            topic = self._draft.topic(record.name) if isinstance(record, TopicRemoved) else None
            self._counts.note(record, topic)
            self._draft.add(record, 0)
