"""Producer ids over random histories of a cluster: whatever is lost or set back, none comes twice.

The real parts of brokers and agent, without sockets: log dirs on files, the blocks of each broker,
the memory of the agent, and the decision of the store over a counter that a test can set back.
"""

import asyncio
import random
import shutil
from pathlib import Path

import pytest

from brokers.cluster.proposals import AllocateProducerIds, Outcome, ProducerIdsResult, Proposal
from brokers.controlplane.issued_ids import SKIP_BITS, IssuedIds
from brokers.server.producer_ids import ProducerIds
from brokers.storage.handles import Handles
from brokers.storage.log_config import DAY_MS, LogConfig
from brokers.storage.log_dir import LogDir
from tests.builders.logs import NOW_MS, append, batch
from tests.fakes.faulty_files import UnsyncedFiles
from tests.fakes.twin import Twin
from tests.scale import count

TOPIC_ID = bytes(range(16))
BROKERS = 2
STEPS = 40
HISTORIES = count(15, 100, long=3_000)


class Store:
    """The counter of a database, and its copies."""

    def __init__(self) -> None:
        self.next_id = 0
        self.copies = [0]

    def allocate(self, asked: AllocateProducerIds) -> ProducerIdsResult:
        twin = Twin()
        twin.set_back(twin.image, next_producer_id=self.next_id)
        (outcome,) = twin.propose_now(asked)
        assert isinstance(outcome.result, ProducerIdsResult)
        self.next_id = outcome.result.first + outcome.result.count
        return outcome.result

    def raise_above(self, producer_id: int) -> None:
        self.next_id = max(self.next_id, producer_id + 1)


class Member:
    """One broker: its log dir, and what is left of its blocks."""

    def __init__(self, path: Path, history: "History") -> None:
        self.path = path
        self.history = history
        self.open()

    def open(self) -> None:
        self.path.mkdir(exist_ok=True)
        files = UnsyncedFiles()
        self.log_dir = LogDir(
            str(self.path),
            files=files,
            handles=Handles(files, max_open=16),
            config_for=lambda _topic: LogConfig(),
        )
        self.log_dir.load_all()
        seen = self.log_dir.handles.producer_ids
        self.ids = ProducerIds(seen, save=self.log_dir.save_producer_ids)
        self.is_registered = False

    def register(self) -> None:
        highest = self.log_dir.handles.producer_ids.highest
        self.history.store.raise_above(highest)
        self.history.agent.reported(highest)
        self.is_registered = True

    async def allocate(self, highest_seen: int) -> Outcome:
        history = self.history
        asked = Proposal(
            id=bytes(16), action=AllocateProducerIds(highest_seen=highest_seen), actor="User:a"
        )
        (amended,) = history.agent.amended([asked])
        assert isinstance(amended.action, AllocateProducerIds)
        outcome = Outcome(result=history.store.allocate(amended.action))
        history.agent.take([outcome], doubts=history.agent.doubts)
        return outcome

    def append(self, producer_id: int) -> None:
        if ("orders", 0) not in self.log_dir.logs:
            self.log_dir.create("orders", 0, TOPIC_ID)
        append(self.log_dir.logs["orders", 0], batch(producer=producer_id, sequence=0))

    def end(self, *, is_killed: bool) -> None:
        if is_killed:
            self.log_dir._files.close(self.log_dir._lock)  # noqa: SLF001
        else:
            self.log_dir.close(broker_epoch=1)


class History:
    """What may happen to a cluster, at random.

    With `is_skipping` nothing else protects ids that only a lost log dir or a broker that is still
    away knows. Without it there is no luck: what is reported has to be enough, so log dirs are not
    lost and all brokers are back before the first id is given out.
    """

    def __init__(self, folder: Path, dice: random.Random, *, is_skipping: bool) -> None:
        self.is_skipping = is_skipping
        self.dice = dice
        self.folder = folder
        self.store = Store()
        self.agent = self.new_agent()
        self.members = [Member(folder / f"broker-{number}", self) for number in range(BROKERS)]
        self.issued: set[int] = set()

    def new_agent(self) -> IssuedIds:
        return IssuedIds(lambda: self.dice.getrandbits(SKIP_BITS) if self.is_skipping else 0)

    async def step(self) -> None:
        member = self.dice.choice(self.members)
        what = self.dice.choice(
            (
                self.give,
                self.give,
                self.give,
                self.append,
                self.append,
                self.import_folder,
                self.forget,
                self.delete,
                self.restart,
                self.copy,
                self.restore,
                self.fail_over,
                self.lose_log_dir,
            )
        )
        await what(member)

    async def give(self, member: Member) -> None:
        """A client asks for an id, and may or may not use it."""
        if not member.is_registered:
            member.register()
        for _ in range(self.dice.choice((1, 3))):
            producer_id = await member.ids.next(member.allocate)
            assert producer_id not in self.issued, f"{producer_id} was issued before"
            assert all(
                info.producer_id != producer_id
                for other in self.members
                for log in other.log_dir.logs.values()
                for info in log.producers.active()
            ), f"{producer_id} is in a log already"
            self.issued.add(producer_id)

    async def append(self, member: Member) -> None:
        """A client that holds an id writes with it, to any broker."""
        if self.issued:
            member.append(self.dice.choice(sorted(self.issued)[-20:]))

    async def import_folder(self, member: Member) -> None:
        """A broker is started with a log that has ids of another cluster."""
        known = max(self.store.next_id, self.agent._highest + 1)  # noqa: SLF001
        stranger = known + self.dice.randrange(5_000)
        member.append(stranger)
        self.issued.add(stranger)
        await self.restart(member)
        member.register()

    async def forget(self, member: Member) -> None:
        member.log_dir.expire_producers(NOW_MS + 8 * DAY_MS)

    async def delete(self, member: Member) -> None:
        if ("orders", 0) in member.log_dir.logs:
            member.log_dir.remove("orders", 0)

    async def restart(self, member: Member) -> None:
        member.end(is_killed=self.dice.random() < 0.5)
        member.open()

    async def copy(self, _member: Member) -> None:
        self.store.copies.append(self.store.next_id)

    async def restore(self, _member: Member) -> None:
        """All is stopped, an old copy restored, and brokers come back one by one."""
        for member in self.members:
            member.end(is_killed=False)
            member.open()
        self.agent = self.new_agent()
        self.store.next_id = self.dice.choice(self.store.copies)
        for member in self.members if not self.is_skipping else ():
            member.register()

    async def fail_over(self, _member: Member) -> None:
        """A standby takes over that is behind; agent and brokers run on."""
        self.agent.doubt()
        self.store.next_id = self.dice.choice(self.store.copies)

    async def lose_log_dir(self, member: Member) -> None:
        if not self.is_skipping:
            return
        member.end(is_killed=True)
        shutil.rmtree(member.path)
        member.open()


@pytest.mark.slow
@pytest.mark.parametrize("is_skipping", [True, False], ids=["with luck", "without luck"])
def test_no_producer_id_is_issued_twice(tmp_path: Path, is_skipping: bool) -> None:
    for seed in range(HISTORIES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        history = History(folder, random.Random(seed), is_skipping=is_skipping)

        async def live(history: History = history) -> None:
            for _ in range(STEPS):
                await history.step()

        try:
            asyncio.run(live())
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        shutil.rmtree(folder)
