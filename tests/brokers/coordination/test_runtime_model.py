"""Any interleaving of operations is as good as one after the other, in the order of their records.

Disks that are slow, appends that fail, leaderships that end: every operation is answered once, what
is answered as done is in the log once, and it saw what the records before it had made.
"""

import asyncio
import errno
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from brokers.coordination.house import Limits
from brokers.coordination.shard import Answer
from brokers.protocol.errors import KafkaError
from tests.brokers.coordination.desk import Desk, cluster, desk, offsets, value
from tests.brokers.replication.parts import WAIT_SECONDS, GatedFiles, until
from tests.fakes.faulty_files import Fault, FaultyFiles
from tests.fakes.toy_shard import ToyOperation, add, put, put_unless, touch
from tests.scale import count

SUBJECTS = ("a", "b", "c")
# What is done: an operation on a subject, or something that happens to the broker.
ASKS = st.tuples(st.sampled_from(("add", "put", "unless", "touch")), st.sampled_from(SUBJECTS))
EVENTS = st.sampled_from(("turn", "turns", "stuck", "free", "full", "epoch", "late", "sooner"))
STEPS = st.lists(ASKS | ASKS | EVENTS, max_size=60)


class Run:
    """One run, with what was asked and answered; every number that is written is unique."""

    def __init__(self, tool: Desk, gate: GatedFiles, files: FaultyFiles) -> None:
        self.tool = tool
        self.gate = gate
        self.files = files
        self.asked: dict[int, tuple[str, list[Answer]]] = {}
        self.looks: list[list[Answer]] = []
        self.epoch = 0
        self.number = 0

    def ask(self, kind: str, subject: str) -> None:
        self.number += 1
        operation: ToyOperation
        if kind == "touch":
            self.looks.append(self.tool.ask(touch(subject, 50)))
            return
        if kind == "add":
            operation = add(subject, self.number)
        elif kind == "put":
            operation = put(subject, self.number)
        else:
            operation = put_unless(subject, self.number)
        self.asked[self.number] = (kind, self.tool.ask(operation))

    async def happen(self, event: str) -> None:
        match event:
            case "turn":
                await asyncio.sleep(0)
            case "turns":
                for _ in range(15):
                    await asyncio.sleep(0)
            case "stuck":
                self.gate.gate.clear()
            case "free":
                self.gate.gate.set()
            case "full":
                kinds = frozenset({"pwrite"})
                self.files.plan(Fault(at=0, error=errno.ENOSPC, kinds=kinds))
            case "epoch":
                self.epoch += 1
                await self.tool.apply(cluster(offsets(epoch=self.epoch), version=self.epoch + 1))
            case "late":
                await self.tool.broker.pass_time(5_400)
            case "sooner":
                await self.tool.broker.pass_time(60)

    async def end(self) -> None:
        self.files.heal()
        self.gate.gate.set()
        await until(lambda: all(answers for _kind, answers in self.asked.values()))
        await self.tool.is_active()
        # Timers may still be on their way to the log; these go behind them.
        for subject in SUBJECTS:
            async with asyncio.timeout(WAIT_SECONDS):
                while not await self._is_put(subject):
                    pass  # The disk is late, and this was refused.

    async def _is_put(self, subject: str) -> bool:
        self.ask("put", subject)
        answers = self.asked[self.number][1]
        await until(lambda: bool(answers))
        await asyncio.sleep(0)
        return not isinstance(answers[0], KafkaError)

    async def check(self) -> None:
        live = self.tool.sums()
        self.epoch += 1
        await self.tool.apply(cluster(offsets(epoch=self.epoch), version=self.epoch + 1))
        again = await self.tool.is_active()
        assert {k: v for k, v in again.sums.items() if k in SUBJECTS} == {
            k: v for k, v in live.items() if k in SUBJECTS
        }
        sums: dict[str, int] = {}
        seen: set[int] = set()
        for key, written, _at in again.replayed:
            kind, subject = key[:1], key[1:].decode()
            number = int(written or b"0")
            if subject in SUBJECTS and number != -1:
                assert number not in seen, f"{number} is in the log twice"
                seen.add(number)
                answer = self.asked[number][1][0]
                if kind == b"=" and not isinstance(answer, KafkaError):
                    assert value([answer]) == sums.get(subject, 0)
            sums[subject] = number + (sums.get(subject, 0) if kind == b"+" else 0)
        for number, (_kind, answers) in self.asked.items():
            assert len(answers) == 1
            if not isinstance(answers[0], KafkaError):
                assert number in seen, f"{number} was confirmed and is not in the log"
        assert all(len(answers) == 1 for answers in self.looks)


@pytest.mark.slow
@given(steps=STEPS)
@settings(max_examples=count(60, 150, long=5_000), deadline=None)
def test_every_interleaving_is_as_good_as_an_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str | tuple[str, str]]
) -> None:
    async def run(folder: Path) -> None:
        gate = GatedFiles()
        files = FaultyFiles(disk=gate)
        limits = Limits(max_round_bytes=400, max_queued=12)
        async with desk(folder, files=files, limits=limits) as tool:
            made = Run(tool, gate, files)
            try:
                for step in steps:
                    if isinstance(step, tuple):
                        made.ask(*step)
                    else:
                        await made.happen(step)
                await made.end()
                await made.check()
            finally:
                gate.gate.set()
        files.close_all()

    asyncio.run(run(tmp_path_factory.mktemp("log")))
