"""One shard at its place: who waits for whom, what a round holds, and who is answered when."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from brokers.clock import SystemClock
from brokers.coordination.house import Limits
from brokers.coordination.shard import NOBODY, Claim, Operation, Outcome, Record
from brokers.protocol.errors import ErrorCode
from brokers.storage.errors import LogDirFailed
from tests.brokers.coordination.desk import cluster, desk, noting, offsets, turns, value
from tests.brokers.replication.parts import GatedFiles, until
from tests.fakes.clock import ManualClock
from tests.fakes.toy_shard import (
    Number,
    ToyOperation,
    ToyShard,
    add,
    beat,
    broken,
    count_slowly,
    put,
    put_unless,
    touch,
    wait,
    wait_noted,
    wake,
)

SHARDS, CHORES = 50, 10
# To find a chore takes a millisecond here, and a slice is two; one more for how they are rounded.
WORK_MS, WORK_OF_A_SLICE = 1, 3


class SlowWork(ManualClock):
    """A clock that advances only by work."""

    def __init__(self) -> None:
        super().__init__()
        self.done = 0

    def work(self) -> None:
        self.done += 1
        self.advance(WORK_MS)


def test_nothing_is_seen_or_answered_before_the_disk_has_confirmed(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            answers = tool.ask(add("a", 5))
            await turns()
            assert answers == []
            assert tool.sums() == {}

            files.gate.set()
            await until(lambda: bool(answers))
            assert value(answers) == 5
            assert tool.sums() == {"a": 5}

    asyncio.run(run())


def test_operations_that_arrive_during_a_round_form_the_next_one(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            partition = tool.broker.leader("__consumer_offsets")
            asked = [tool.ask(add("a", 1)) for _ in range(2)]
            await turns()
            asked += [tool.ask(add("a", 1)) for _ in range(62)]
            await turns()
            assert partition.waiting == 1

            files.gate.set()
            await until(lambda: all(asked))
            assert tool.sums() == {"a": 64}
            assert partition.log.end_offset == 64
            stamps = {at for _key, _value, at in tool.shards[0].replayed}
            assert stamps == {tool.broker.clock.now_ms()}

    asyncio.run(run())


def test_sixty_four_who_commit_at_once_need_two_appends_at_most(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            rounds: list[float] = []
            tool.runtime.on_round = rounds.append
            asked = [tool.ask(add("a", 1)) for _ in range(64)]
            await until(lambda: all(asked))
            assert len(rounds) <= 2

    asyncio.run(run())


def test_exclusive_operation_waits_for_earlier_ones_and_sees_their_result(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            asked = [
                tool.ask(operation)
                for operation in (
                    add("a", 1),
                    add("a", 2),
                    put("a", 10),
                    put("a", 20),
                    add("a", 5),
                    put("b", 1),
                )
            ]
            files.gate.set()
            await until(lambda: all(asked))

            assert [value(answers) for answers in asked] == [1, 2, 3, 10, 5, 0]
            assert tool.sums() == {"a": 25, "b": 1}

    asyncio.run(run())


def test_shared_operation_does_not_overtake_a_waiting_exclusive_one(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            order: list[str] = []
            for name, operation in (("add", add("a", 1)), ("put", put("a", 9)), ("2", add("a", 2))):
                tool.runtime.submit(0, operation, noting(order, name))
            files.gate.set()
            await until(lambda: len(order) == 3)
            assert order == ["add", "put", "2"]
            assert tool.sums() == {"a": 11}

    asyncio.run(run())


def test_read_only_operation_is_answered_in_its_turn(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            tool.ask(put("a", 1))
            tool.ask(put("a", 2))
            await turns()
            assert value(tool.ask(touch("a"))) == 0
            files.gate.set()

    asyncio.run(run())


def test_a_look_that_finds_work_claims_and_does_it(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            assert await tool.told_of(put_unless("a", 7)) == 0
            assert value(tool.ask(put_unless("a", 7))) == 7

            files.gate.clear()
            first, second = tool.ask(put("a", 8)), tool.ask(put_unless("a", 9))
            await turns()
            assert second == []
            files.gate.set()
            await until(lambda: bool(first and second))
            assert value(second) == 8

    asyncio.run(run())


def test_an_operation_that_refuses_is_answered_at_once_and_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            assert value(tool.ask(add("a", 0))) is ErrorCode.INVALID_REQUEST
            assert tool.broker.leader("__consumer_offsets").log.end_offset == 0

    asyncio.run(run())


def test_bug_in_an_operation_fails_that_operation_only(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            assert value(tool.ask(broken("a"))) is ErrorCode.UNKNOWN_SERVER_ERROR
            assert value(tool.ask(broken("a", Claim.NONE))) is ErrorCode.UNKNOWN_SERVER_ERROR
            assert await tool.told_of(put("a", 3)) == 0
            assert [event for event, _error in tool.told] == ["coordinator.operation_failed"] * 2

    asyncio.run(run())


def test_bug_in_a_callback_fails_that_client_only(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:

            def fail(_answer: object) -> None:
                raise RuntimeError("a bug")

            tool.runtime.submit(0, add("a", 1), fail)
            assert await tool.told_of(add("a", 2)) == 2
            assert tool.sums() == {"a": 3}
            assert [event for event, _error in tool.told] == ["coordinator.answer_failed"]

    asyncio.run(run())


def test_parked_client_is_answered_by_another_operation(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            parked = [tool.ask(wait("a")), tool.ask(wait("a"))]
            noted = tool.ask(wait_noted("a"))
            await until(lambda: tool.sums() == {"a": 1})
            assert tool.runtime.parked == 3
            assert await tool.told_of(wake("a", 42)) == 3
            await until(lambda: bool(noted))
            assert [value(answers) for answers in (*parked, noted)] == [42, 42, 42]
            assert tool.runtime.parked == 0

    asyncio.run(run())


def test_the_operation_is_answered_before_those_it_answers(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            order: list[str] = []
            for number in range(3):
                tool.runtime.submit(0, wait("a"), noting(order, f"member {number}"))
            tool.runtime.submit(0, wake("a", 1), noting(order, "leader"))
            await until(lambda: len(order) == 4)
            assert order == ["leader", "member 0", "member 1", "member 2"]

    asyncio.run(run())


def test_no_more_are_parked_than_there_is_room_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path, limits=Limits(max_parked=2)) as tool:
            for _ in range(2):
                assert tool.ask(wait("a")) == []
            assert value(tool.ask(wait("a"))) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert tool.runtime.look(0, lambda shard: len(shard.waiting["a"])) == 2
            await tool.told_of(wake("a", 1))
            assert tool.ask(wait("a")) == []

    asyncio.run(run())


def test_no_more_wait_than_there_is_room_for(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files, limits=Limits(max_queued=3)) as tool:
            files.gate.clear()
            asked = [tool.ask(put("a", number)) for number in range(3)]
            assert value(tool.ask(put("a", 9))) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert value(tool.ask(add("b", 9))) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert value(tool.ask(touch("a"))) == 0
            files.gate.set()
            await until(lambda: all(asked))
            assert await tool.told_of(put("a", 5)) == 2

    asyncio.run(run())


def test_operation_too_large_for_a_batch_is_refused_alone(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            large = tool.ask(add("a" * 1_000, 1, copies=2_000))
            assert value(large) is ErrorCode.UNKNOWN_SERVER_ERROR
            assert await tool.told_of(add("a", 1)) == 1
            assert tool.sums() == {"a": 1}

    asyncio.run(run())


def test_operation_that_exceeds_a_round_goes_into_the_next(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path, limits=Limits(max_round_bytes=1_000)) as tool:
            rounds: list[float] = []
            tool.runtime.on_round = rounds.append
            asked = [tool.ask(add("a" * 100, 1)) for _ in range(20)]
            asked.append(tool.ask(add("b" * 2_000, 1)))
            await until(lambda: all(asked))
            assert 4 <= len(rounds) <= 5
            assert tool.sums() == {"a" * 100: 20, "b" * 2_000: 1}

    asyncio.run(run())


def test_refused_append_fails_all_operations_and_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            partition = tool.broker.leader("__consumer_offsets")
            asked = [tool.ask(add("a", 1)), tool.ask(put("b", 1)), tool.ask(wait_noted("c"))]
            queued = tool.ask(put("b", 2))
            partition.leader_epoch += 1
            await until(lambda: all(asked))
            assert {value(answers) for answers in asked} == {ErrorCode.NOT_COORDINATOR}
            partition.leader_epoch -= 1
            await until(lambda: bool(queued))
            assert value(queued) in (0, ErrorCode.NOT_COORDINATOR)
            assert tool.sums().keys() <= {"b"}
            assert tool.runtime.parked == 0

    asyncio.run(run())


def test_hanging_disk_is_reported_after_the_timeout_and_the_round_still_counts(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            asked = [tool.ask(put("a", 1)), tool.ask(put("a", 2)), tool.ask(wait_noted("b"))]
            await turns()
            gathered = tool.ask(put("c", 3))
            await tool.broker.pass_time(5_000 + 5_000 // 16)
            await until(lambda: all((*asked, gathered)))
            for answers in (*asked, gathered, tool.ask(put("d", 4))):
                assert value(answers) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert tool.runtime.parked == 0

            files.gate.set()
            await until(lambda: tool.sums() == {"a": 1, "b": 1})
            assert await tool.told_of(put("a", 5)) == 1
            assert tool.sums() == {"a": 5, "b": 1}

    asyncio.run(run())


@pytest.mark.parametrize("subject", ["a", "b"])
@pytest.mark.parametrize("asked_ms", [4_000, 15_000])
def test_refusal_while_the_disk_hangs_counts_as_a_heartbeat(
    tmp_path: Path, subject: str, asked_ms: int
) -> None:
    """Until its time is over, it waits for the same subject or for the next round."""

    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            await tool.told_of(put("a", 1))
            tool.ask(touch("a", 16_000))
            files.gate.clear()
            tool.ask(add(subject, 1))
            await turns()
            await tool.broker.pass_time(asked_ms)
            heard = tool.ask(beat("a", 2, 16_000))
            await turns()
            await tool.broker.pass_time(17_000 - asked_ms)
            await until(lambda: bool(heard))
            assert value(heard) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            files.gate.set()

            # The timer, had it fired, would have set it to -1.
            sums = {"a": 2} if subject == "a" else {"a": 1, "b": 1}
            await until(lambda: tool.sums() == sums)
            assert await tool.told_of(add("a", 0)) is ErrorCode.INVALID_REQUEST
            assert tool.sums() == sums

    asyncio.run(run())


def test_fifty_shards_with_chores_share_one_slice(tmp_path: Path) -> None:
    async def run() -> None:
        clock = SlowWork()
        async with desk(tmp_path, cluster(offsets(partitions=SHARDS)), clock=clock) as tool:
            for index in range(SHARDS):
                tool.shards[index].sums = dict.fromkeys(map(str, range(CHORES)), 1)
                tool.shards[index].on_chore = clock.work
            tool.runtime.run_chores()
            while clock.done < SHARDS * CHORES:
                before = clock.done
                await asyncio.sleep(0)
                assert clock.done - before <= WORK_OF_A_SLICE

    asyncio.run(run())


def test_a_shard_that_cannot_take_in_what_it_wrote_is_read_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            assert await tool.told_of(add("a", 1)) == 1
            tool.shards[0].is_broken = True
            assert await tool.told_of(add("a", 2)) is ErrorCode.NOT_COORDINATOR
            await tool.is_active()
            assert len(tool.shards) == 2
            assert tool.sums() == {"a": 3}
            assert [event for event, _error in tool.told] == ["coordinator.replay_failed"]

    asyncio.run(run())


def test_a_timer_fires_once_its_time_is_over_and_not_when_it_was_put_off(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            await tool.told_of(put("a", 1))
            await tool.told_of(put("b", 1))
            tool.ask(touch("a"))
            tool.ask(touch("b"))
            await tool.broker.pass_time(900)
            tool.ask(touch("a"))
            await tool.broker.pass_time(900)
            await until(lambda: tool.sums()["b"] == -1)
            assert tool.sums()["a"] == 1

            await tool.broker.pass_time(1_100)
            await until(lambda: tool.sums()["a"] == -1)

    asyncio.run(run())


def test_a_timer_that_was_cancelled_does_not_fire(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            await tool.told_of(put("a", 1))
            tool.ask(touch("a"))
            tool.ask(touch("a", 0))
            await tool.broker.pass_time(5_000)
            await turns()
            assert tool.sums() == {"a": 1}

    asyncio.run(run())


def test_operation_that_needs_a_claim_is_refused_while_the_disk_hangs(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files, limits=Limits(max_queued=5)) as tool:
            files.gate.clear()
            waiting = [tool.ask(put_unless("a", 1)) for _ in range(20)]
            await turns()

            refused = [answers for answers in waiting if answers]
            assert len(refused) == 15
            assert {value(answers) for answers in refused} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
            files.gate.set()
            await until(lambda: all(waiting))

    asyncio.run(run())


def test_a_timer_that_had_to_wait_and_was_put_off_meanwhile_does_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            await tool.told_of(put("a", 1))
            tool.ask(touch("a"))
            files.gate.clear()
            tool.ask(put("a", 2))
            await turns()
            await tool.broker.pass_time(1_100)
            tool.ask(touch("a"))
            files.gate.set()

            await until(lambda: tool.sums() == {"a": 2})
            await turns()
            assert tool.sums() == {"a": 2}
            await tool.broker.pass_time(1_100)
            await until(lambda: tool.sums() == {"a": -1})

    asyncio.run(run())


def test_a_timer_whose_operation_was_refused_tries_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            partition = tool.broker.leader("__consumer_offsets")
            tool.ask(touch("a"))
            partition.leader_epoch += 1
            await tool.broker.pass_time(1_100)
            await turns()
            assert tool.sums() == {}
            partition.leader_epoch -= 1
            await tool.broker.pass_time(600)
            await until(lambda: tool.sums() == {"a": -1})

    asyncio.run(run())


def test_a_job_runs_beside_requests_and_its_find_is_taken_up(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path, clock=SystemClock()) as tool:
            for _ in range(3):
                assert value(tool.ask(count_slowly("a", 5_000))) == 5_000
            assert await tool.told_of(put("b", 1)) == 0
            await until(lambda: tool.sums().get("a") == 5_000)
            await turns()
            assert [key for key, _value, _at in tool.shards[0].replayed].count(b"=a") == 1

    asyncio.run(run())


def test_a_thousand_answers_do_not_hold_the_loop(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            answered = 0
            counts: list[int] = []

            def slow(_answer: object) -> None:
                nonlocal answered
                answered += 1
                tool.broker.manual.advance(1)

            for _ in range(1_000):
                tool.runtime.submit(0, wait("a"), slow)
            tool.ask(wake("a", 1))
            while answered < 1_000:
                counts.append(answered)
                await asyncio.sleep(0)
            steps = [later - sooner for sooner, later in pairwise(counts)]
            # Of a millisecond each; a turn may hold a slice of its own and that of a round.
            assert max(steps) <= 5

    asyncio.run(run())


def test_an_operation_that_claims_nothing_may_not_write(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:

            def write(_shard: ToyShard, _now_ms: int, ticket: int) -> Outcome[ToyShard]:
                assert ticket != NOBODY
                return Outcome(records=(Record(b"=a", b"1"),), response=Number(value=1))

            wrong: ToyOperation = Operation(name="wrong", subject="a", claim=Claim.NONE, run=write)
            assert value(tool.ask(wrong)) is ErrorCode.UNKNOWN_SERVER_ERROR

    asyncio.run(run())


def test_a_failed_disk_is_reported_and_ends_in_another_place(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.fault = OSError(5, "broken")
            asked = tool.ask(add("a", 1))
            await until(lambda: bool(tool.broker.failures))
            assert isinstance(tool.broker.failures[0], LogDirFailed)
            assert tool.sums() == {}
            tool.broker.leader("__consumer_offsets").resign()
            assert value(asked) is ErrorCode.NOT_COORDINATOR

    asyncio.run(run())
