"""The broker's link to its agent: the contract of every store, and life with agents that fail."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from brokers.clock import SystemClock
from brokers.cluster import link
from brokers.cluster.changes import Change
from brokers.cluster.image import Position
from brokers.cluster.plans import Plan
from brokers.cluster.proposals import Action, AllocateProducerIds, CreateTopic
from brokers.cluster.store import MetadataRegressed, MetadataStore
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.server import agent_link
from brokers.server.agent_link import MAX_REFUSALS, AgentLink
from brokers.server.logs import Log
from tests.contracts.keeper import Keeper, Reader, joined, new_id, proposal, registration
from tests.contracts.metadata_store import CASES, Case, case_name, check
from tests.fakes.agent_server import AgentServer, serving
from tests.fakes.twin import Door, Twin
from tests.scale import count

PATIENCE_SECONDS = 20.0


class Lines:
    """What a link has logged."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __call__(self, line: bytes) -> None:
        self.events.append(json.loads(line)["event"])


class LinkKeeper:
    """A twin behind an agent's socket, with a link for every broker."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.twin = Twin()
        self.cluster_id = self.twin.cluster_id
        self.lines = Lines()
        self.links: list[AgentLink] = []
        # The doors that the agent has given, in the order of the connections.
        self.doors: list[Door] = []

    def attach(self) -> AgentLink:
        return self.link()

    def link(self, *, proposal_seconds: float = agent_link.PROPOSAL_SECONDS) -> AgentLink:
        clock = SystemClock()
        made = AgentLink(
            str(self.path),
            clock=clock,
            log=Log(clock, write=self.lines),
            random=Random(7),
            proposal_seconds=proposal_seconds,
        )
        self.links.append(made)
        return made

    def door(self) -> MetadataStore:
        self.doors.append(self.twin.attach())
        return self.doors[-1]

    async def end(self, store: MetadataStore) -> None:
        assert isinstance(store, AgentLink)
        await store.close()
        self.doors[self.links.index(store)].kill()

    async def forget(self) -> None:
        self.twin.forget_changes()

    async def preview(self, actions: Sequence[Action]) -> Plan:
        return self.twin.preview(actions)

    async def close(self) -> None:
        for each in self.links:
            await each.close()


@asynccontextmanager
async def served(path: Path) -> AsyncIterator[tuple[LinkKeeper, AgentServer]]:
    keeper = LinkKeeper(path)
    async with serving(path, keeper.door) as server:
        try:
            yield keeper, server
        finally:
            await keeper.close()


Story: TypeAlias = Callable[[LinkKeeper, AgentServer], Awaitable[None]]


def run(story: Story, path: Path) -> None:
    async def told() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), served(path) as (keeper, server):
            await story(keeper, server)

    asyncio.run(told())


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop turn until something is so; the story's time limit bounds it."""
    while not is_so():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_the_link_keeps_the_contract(case: Case, tmp_path: Path) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Keeper]:
        async with served(tmp_path / "agent.sock") as (keeper, _):
            yield keeper

    check(case, opened)


# Agents that fail.


def test_a_restarted_agent_is_followed_on_without_gap_or_repetition(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        before = len(reader.seen)

        await server.stop()
        keeper.twin.create_topic("while-away")
        await server.start()
        await reader.reach(lambda image: "while-away" in image.topics)
        keeper.twin.create_topic("afterwards")
        await reader.reach(lambda image: "afterwards" in image.topics)

        assert all(isinstance(update, Change) for update in reader.seen[before:])
        assert reader.image == keeper.twin.image
        await reader.close()

    run(story, tmp_path / "agent.sock")


def test_a_broker_that_comes_back_presents_what_it_saw_last(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        assert reader.image is not None
        server.seen.clear()

        server.cut()
        await until(lambda: any(isinstance(message, link.Applied) for message in server.seen))

        register, follow, applied = server.seen
        assert isinstance(register, link.Register)
        assert follow == link.Follow(after=reader.image.position)
        assert applied == link.Applied(version=reader.image.version)
        await reader.close()

    run(story, tmp_path / "agent.sock")


def test_a_feed_cut_in_the_middle_of_a_snapshot_begins_it_again(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        for number in range(50):
            keeper.twin.create_topic(f"topic-{number}", partitions=100) if (
                keeper.twin.image.brokers
            ) else keeper.twin.register_now()
        broker = keeper.attach()
        await broker.register(registration())
        # The half of a snapshot that another feed would have sent.
        frames = list(link.encode_snapshot(keeper.twin.image))
        server.send(b"".join(frames[: len(frames) // 2]))
        server.cut()

        image = await anext(broker.follow(Position()))

        assert image == keeper.twin.image

    run(story, tmp_path / "agent.sock")


def test_a_proposal_whose_answer_was_lost_is_repeated_and_done_once(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        server.loses_outcomes = True
        asked = asyncio.create_task(reader.store.propose([proposal(CreateTopic(name="once"))]))
        await until(lambda: "once" in keeper.twin.image.topics)
        version = keeper.twin.image.version

        server.loses_outcomes = False
        server.cut()
        (outcome,) = await asked

        assert (outcome.error, outcome.version) == (ErrorCode.NONE, version)
        assert keeper.twin.image.version == version
        sent = [message for message in server.seen if isinstance(message, link.Propose)]
        assert len(sent) == 2
        assert sent[0] == sent[1]
        await reader.close()

    run(story, tmp_path / "agent.sock")


def test_a_proposal_without_an_answer_in_time_is_a_connection_error(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        hurried = keeper.link(proposal_seconds=0.05)
        await hurried.register(registration())
        await server.stop()

        with pytest.raises(ConnectionError, match=r"agent of this host .* within 0\.05 s"):
            await hurried.propose([proposal(AllocateProducerIds())])
        await server.start()

    run(story, tmp_path / "agent.sock")


def test_a_proposal_that_the_database_refuses_twice_ends_with_the_reason(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        keeper.twin.is_away = True
        server.refusal = "database is locked by process 7"

        with pytest.raises(ConnectionError, match="locked by process 7"):
            await reader.store.propose([proposal(CreateTopic(name="late"))])

        sent = [message for message in server.seen if isinstance(message, link.Propose)]
        assert len(sent) == MAX_REFUSALS
        keeper.twin.is_away = False
        await reader.close()

    run(story, tmp_path / "agent.sock")


def test_a_proposal_that_the_database_could_not_take_is_asked_again(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        keeper.twin.is_away = True
        asked = asyncio.create_task(reader.store.propose([proposal(CreateTopic(name="late"))]))
        await until(lambda: any(isinstance(message, link.Propose) for message in server.seen))

        keeper.twin.is_away = False
        (outcome,) = await asked

        assert outcome.error is ErrorCode.NONE
        await reader.close()

    run(story, tmp_path / "agent.sock")


def test_a_call_too_large_for_a_frame_is_refused_with_its_size(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        broker = keeper.attach()
        await broker.register(registration())
        huge = CreateTopic(name="huge", assignments=((1,),) * 600_000)

        first, second = await broker.propose([proposal(huge), proposal(AllocateProducerIds())])

        assert first.error is second.error is ErrorCode.POLICY_VIOLATION
        assert "1048576" in first.message

    run(story, tmp_path / "agent.sock")


def test_calls_without_answer_are_bounded(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        broker = keeper.attach()
        await broker.register(registration())
        server.loses_outcomes = True
        waiting = [
            asyncio.create_task(broker.propose([proposal(AllocateProducerIds())]))
            for _ in range(agent_link.MAX_CALLS)
        ]
        await asyncio.sleep(0)

        with pytest.raises(ConnectionError, match="64 calls wait"):
            await broker.propose([proposal(AllocateProducerIds())])
        await broker.close()
        ends = await asyncio.gather(*waiting, return_exceptions=True)

        assert {type(end) for end in ends} == {ConnectionError}

    run(story, tmp_path / "agent.sock")


def test_an_agent_that_is_not_there_is_named(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        await server.stop()

        with pytest.raises(ConnectionError, match=r"agent\.sock"):
            await keeper.attach().register(registration())
        await server.start()

    run(story, tmp_path / "agent.sock")


def test_a_refused_registration_says_why(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        server.link_version = 99

        with pytest.raises(KafkaError) as refusal:
            await keeper.attach().register(registration())

        assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION

    run(story, tmp_path / "agent.sock")


def test_proposals_before_registration_are_a_connection_error(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        with pytest.raises(ConnectionError, match="not registered"):
            await keeper.attach().propose([proposal(AllocateProducerIds())])

    run(story, tmp_path / "agent.sock")


def test_a_reader_may_come_again_after_a_refusal(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        broker = keeper.attach()
        await broker.register(registration())
        with pytest.raises(MetadataRegressed):
            await anext(broker.follow(Position(1000, new_id())))

        image = await anext(broker.follow(Position()))

        assert image == keeper.twin.image

    run(story, tmp_path / "agent.sock")


def test_a_second_reader_takes_the_place_of_the_first(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        broker = keeper.attach()
        await broker.register(registration())
        first = broker.follow(Position())
        await anext(first)

        second = broker.follow(Position())
        image = await anext(second)

        assert image == keeper.twin.image
        with pytest.raises(StopAsyncIteration):
            await anext(first)

    run(story, tmp_path / "agent.sock")


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x00",
        link.LENGTH.pack(3) + b"\xc1\xc1\xc1",
        link.encode(link.SnapshotEnd(position=Position())),
        link.encode(link.Pong()),
        link.encode(link.ChangeFrame(position=Position(10**6, new_id()), records=())),
    ],
    ids=["huge", "empty", "no message", "no snapshot", "not an agent's", "a gap"],
)
def test_nonsense_from_the_agent_costs_the_connection_only(tmp_path: Path, nonsense: bytes) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)

        server.send(nonsense)
        await until(lambda: "agent_link.restored" in keeper.lines.events)
        keeper.twin.create_topic("afterwards")
        await reader.reach(lambda image: "afterwards" in image.topics)

        assert "agent_link.lost" in keeper.lines.events
        await reader.close()

    run(story, tmp_path / "agent.sock")


def test_pings_are_answered_and_tell_the_age_of_the_database(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        broker = keeper.attach()
        await broker.register(registration())

        server.ping(db_age_ms=60_000)
        await until(lambda: link.Pong() in server.seen)

        assert 60_000 <= broker.database_age_ms < 80_000

    run(story, tmp_path / "agent.sock")


def test_an_agent_that_falls_silent_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_link, "SILENT_SECONDS", 0.05)

    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        broker = keeper.attach()
        await broker.register(registration())

        await until(lambda: "agent_link.restored" in keeper.lines.events)

        assert len(keeper.doors) >= 2

    run(story, tmp_path / "agent.sock")


def test_a_slow_reader_gets_the_whole_instead_of_all_it_missed(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        for number in range(600):
            keeper.twin.create_topic(f"topic-{number}")
        last = keeper.twin.image
        before = len(reader.seen)
        # All of it has arrived before any of it is taken.
        await until(lambda: server.sent == last.position)
        server.ping()
        await until(lambda: link.Pong() in server.seen)

        await reader.reach(lambda image: image.version == last.version)

        assert reader.image == last
        assert len(reader.seen) - before < 600
        await reader.close()

    run(story, tmp_path / "agent.sock")


def test_a_slow_reader_that_has_an_image_of_its_own_keeps_no_ping_waiting(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        assert isinstance(reader.store, AgentLink)
        await reader.close()
        # It goes on from what it has, as a broker does whose feed failed once.
        await reader.reach(lambda image: image.version == keeper.twin.image.version)
        keeper.twin.create_topic("first")
        await reader.step()
        server.seen.clear()
        for number in range(600):
            keeper.twin.create_topic(f"topic-{number}")
        last = keeper.twin.image
        # It asks for the whole rather than for changes that nobody takes.
        await until(lambda: link.Follow(after=Position()) in server.seen)
        server.ping()
        await until(lambda: link.Pong() in server.seen)

        await reader.reach(lambda image: image.version == last.version)

        assert reader.image == last
        await reader.close()

    run(story, tmp_path / "agent.sock")


def test_an_incarnation_that_the_agent_takes_for_a_new_one_is_told_to_restart(
    tmp_path: Path,
) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        await server.stop()
        broker_id = reader.registered.broker_id
        keeper.twin.kill(broker_id)
        keeper.twin.register_now(broker_id=broker_id)
        keeper.twin.kill(broker_id)
        await server.start()

        with pytest.raises(KafkaError) as refusal:
            await reader.reach(lambda _: False)

        assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH

    run(story, tmp_path / "agent.sock")


def test_closing_tells_whoever_waits(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        waiting = asyncio.create_task(reader.step())
        await asyncio.sleep(0)

        await keeper.links[0].close()

        with pytest.raises(ConnectionError, match="closed"):
            await waiting
        assert not keeper.links[0].is_connected

    run(story, tmp_path / "agent.sock")


def test_a_proposal_that_nobody_waits_for_is_not_repeated(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        server.loses_outcomes = True
        asked = asyncio.create_task(reader.store.propose([proposal(AllocateProducerIds())]))
        await until(lambda: any(isinstance(message, link.Propose) for message in server.seen))
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        server.seen.clear()

        server.cut()
        await until(lambda: any(isinstance(message, link.Applied) for message in server.seen))
        server.ping()
        await until(lambda: link.Pong() in server.seen)

        assert not any(isinstance(message, link.Propose) for message in server.seen)
        await reader.close()

    run(story, tmp_path / "agent.sock")


# Of one story: enough for each kind to come in the middle of others.
FAULTS = 12


async def disturb(random: Random, keeper: LinkKeeper, server: AgentServer) -> None:
    """Cut the agent off, restart it, make it deaf, take its database away; mend it at last."""
    for _ in range(FAULTS):
        for _ in range(random.randrange(200)):
            await asyncio.sleep(0)
        match random.randrange(4):
            case 0:
                server.cut()
            case 1:
                await server.stop()
                await server.start()
            case 2:
                server.loses_outcomes = not server.loses_outcomes
                server.cut()
            case _:
                keeper.twin.is_away = not keeper.twin.is_away
                keeper.twin.wake()
        if random.random() < 0.2:
            keeper.twin.forget_changes()
    server.loses_outcomes, keeper.twin.is_away = False, False
    server.cut()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(count(3, 5, long=100)))
def test_whatever_breaks_every_proposal_is_done_once_and_all_see_the_same(
    tmp_path: Path, seed: int
) -> None:
    async def create(reader: Reader, number: int, disturbing: asyncio.Task[None]) -> int:
        made = 0
        while made < 5 or not disturbing.done():
            action = CreateTopic(name=f"topic-{number}-{made}")
            (outcome,) = await reader.store.propose([proposal(action)])
            assert outcome.error is ErrorCode.NONE, outcome
            made += 1
        return made

    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        readers = [await joined(keeper) for _ in range(3)]
        disturbing = asyncio.create_task(disturb(Random(seed), keeper, server))

        made = await asyncio.gather(
            *(create(reader, number, disturbing) for number, reader in enumerate(readers))
        )
        await asyncio.gather(
            *(
                reader.reach(lambda image: image.version >= keeper.twin.image.version)
                for reader in readers
            )
        )

        # Three registrations, three brokers let in, and one change for each topic.
        assert len(keeper.twin.image.topics) == sum(made)
        assert keeper.twin.image.version == 6 + sum(made)
        assert all(reader.image == keeper.twin.image for reader in readers)
        assert len(keeper.doors) > len(readers), "no link was ever broken"
        for reader in readers:
            await reader.close()

    run(story, tmp_path / "agent.sock")
