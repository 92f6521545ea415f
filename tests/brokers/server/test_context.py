"""Proposals of handlers: who asks, what is visible afterwards, and what becomes of a lost store."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from brokers.cluster.proposals import MAX_PROPOSALS, CreateTopic, Outcome, Proposal
from brokers.protocol.apis import APIS
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.headers import Request
from brokers.server.call import Call
from brokers.server.context import Context
from tests.brokers.server.test_call import Channel
from tests.fakes.listener import running_listener


class Store:
    """Answers with a version, or as it is told to."""

    def __init__(self, answer: Exception | int | None) -> None:
        self.answer = answer
        self.calls: list[Sequence[Proposal]] = []

    async def propose(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        self.calls.append(proposals)
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.get_running_loop().create_future()
        assert isinstance(self.answer, int)
        return [Outcome(version=self.answer)] * len(proposals)


def call() -> Call:
    return Call(Request(APIS[19], 5, 1, "test", memoryview(b""), 0), Channel(), 0.0)


def with_store(store: Any, story: Any) -> None:
    async def whole() -> None:
        async with running_listener([]) as running:
            running.context.store = store
            await story(running.context)

    asyncio.run(whole())


TOPIC = CreateTopic(name="orders")


def test_a_proposal_says_who_asks_and_under_which_epoch() -> None:
    store = Store(0)

    async def story(context: Context) -> None:
        context.broker_id, context.broker_epoch = 3, 17
        await context.propose(call(), [TOPIC], timeout_ms=1000, validate_only=True)

    with_store(store, story)
    ((proposal,),) = store.calls
    assert (proposal.broker_id, proposal.broker_epoch) == (3, 17)
    assert (proposal.actor, proposal.client_id) == ("User:ANONYMOUS", "test")
    assert proposal.address == Channel().peer.address
    assert proposal.validate_only
    assert len(proposal.id) == 16


def test_many_actions_go_in_several_calls_and_come_back_in_order() -> None:
    store = Store(0)

    async def story(context: Context) -> None:
        outcomes = await context.propose(call(), [TOPIC] * 1201, timeout_ms=1000)
        assert len(outcomes) == 1201

    with_store(store, story)
    assert [len(part) for part in store.calls] == [MAX_PROPOSALS, MAX_PROPOSALS, 201]


def test_an_accepted_change_is_seen_here_before_it_is_answered() -> None:
    async def story(context: Context) -> None:
        task = asyncio.create_task(context.propose(call(), [TOPIC], timeout_ms=1000))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()

        context.applied(6)
        await asyncio.sleep(0)
        assert not task.done()
        context.applied(7)

        assert [outcome.version for outcome in await task] == [7]

    with_store(Store(7), story)


def refused(store: Store, *, timeout_ms: int = 1000) -> list[Outcome]:
    answers: list[Outcome] = []

    async def story(context: Context) -> None:
        answers.extend(await context.propose(call(), [TOPIC, TOPIC], timeout_ms=timeout_ms))

    with_store(store, story)
    return answers


def test_a_lost_store_and_a_late_one_are_timeouts() -> None:
    for store, timeout_ms in ((Store(ConnectionError("gone")), 1000), (Store(None), 0)):
        outcomes = refused(store, timeout_ms=timeout_ms)

        assert [outcome.error for outcome in outcomes] == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert "look before you repeat" in outcomes[0].message


def test_a_refusal_of_the_store_is_the_outcome_of_each() -> None:
    outcomes = refused(Store(KafkaError(ErrorCode.STALE_BROKER_EPOCH, "an old epoch")))

    assert [outcome.error for outcome in outcomes] == [ErrorCode.STALE_BROKER_EPOCH] * 2


def test_who_gives_up_waiting_is_forgotten() -> None:
    async def story(context: Context) -> None:
        waits: list[Coroutine[Any, Any, None]] = [context.wait_applied(5) for _ in range(3)]
        tasks = [asyncio.create_task(wait) for wait in waits]
        await asyncio.sleep(0)

        for task in tasks[:2]:
            task.cancel()
        await asyncio.wait(tasks[:2])
        context.applied(5)

        await tasks[2]
        await context.wait_applied(4)

    with_store(Store(0), story)
