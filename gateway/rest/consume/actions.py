"""Executes the calls of a consumer on the worker that owns it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from gateway.kafka.errors import KafkaFailure
from gateway.kafka.member import NotAssigned, Subscription
from gateway.kafka.readers.engine import TooManyReadings
from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import Place, Position, PositionKind, Record
from gateway.rest.calls import Call, Gone
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume import bodies, delivery, rights
from gateway.rest.consume.bodies import EMBEDDED, V2
from gateway.rest.consume.ending import Ending
from gateway.rest.consume.instances import Instance, Instances, Matching, log
from gateway.rest.consume.shown import written

# Of one fetch: its records, its text and unsent output are in memory, for each consumer. The
# published interface allows 64 MiB at most, and a program fetches repeatedly anyway.
MAX_BYTES: Final = 4 * 1_048_576
NO_CONTENT: Final = 204
# How often a fetch looks for new topics of its consumer's pattern, as subscriptions of sockets do.
LOOK_FOR_TOPICS_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call of a consumer, on the worker that owns it."""

    call: Call
    instances: Instances
    instance: Instance
    body: Mapping[str, Any]
    # Another worker passed the call on, and waits for the answer.
    is_passed: bool
    ending: Ending = field(default_factory=Ending)


Serve = Callable[[Asked], Awaitable[None]]


async def exist(asked: Asked) -> None:
    await done(asked)


async def delete(asked: Asked) -> None:
    # Stop a waiting fetch, which would delay this call.
    asked.instance.member.stop()
    async with asked.instance.turn(is_last=True):
        await asked.instances.close_one(asked.instance)
    await done(asked)


async def subscribe(asked: Asked) -> None:
    wanted = bodies.subscription_of(asked.body)
    if isinstance(wanted, Subscription):
        await read_instead(asked, wanted)
    else:
        await read_matching(asked, wanted)


async def assign(asked: Asked) -> None:
    wanted = Subscription(places=tuple(bodies.places_of(asked.body)))
    await read_instead(asked, wanted)


async def unsubscribe(asked: Asked) -> None:
    instance = asked.instance
    async with instance.turn():
        instance.matching = None
        if instance.member.subscription:
            await asked.instances.run(instance, partial(instance.member.subscribe, Subscription()))
    await done(asked)


async def subscription(asked: Asked) -> None:
    await answered(asked, {"topics": asked.instance.member.subscription.topics})


async def assignments(asked: Asked) -> None:
    places = [value_of(place) for place in asked.instance.member.assignment()]
    await answered(asked, {"partitions": places})


async def fetch(asked: Asked) -> None:
    """Answer with records; they count as read once the answer has been sent."""
    call, instance, instances = asked.call, asked.instance, asked.instances
    member, form = instance.member, instance.draft.form
    check_accept(call, instance)
    wait_ms = min(number(call, "timeout", instance.draft.wait_ms), instance.draft.wait_ms)
    max_bytes = min(number(call, "max_bytes", MAX_BYTES), MAX_BYTES)
    ending = asked.ending
    async with AsyncExitStack() as turn:
        async with ending.cut():
            await turn.enter_async_context(instance.turn())
        if not instance.is_subscribed:
            raise illegal("Consumer is not subscribed to any topics or assigned any partitions")
        async with ending.while_there(call):
            await look_for_topics(asked)
            records = await taken(asked, max_bytes=max_bytes, wait_s=wait_ms / 1000)
        is_read = False
        try:
            ending.check()
            rights.require_topics(call, (record.topic for record in records))
            text = await instances.run(instance, partial(written, records, form))
            async with ending.cut():
                is_read = await delivery.left_whole(
                    call, 200, EMBEDDED[form], len(text), delivery.pieces_of(text)
                )
                if asked.is_passed:
                    is_read = is_read and await delivery.confirmed(call)
        finally:
            settle = member.delivered if is_read else member.give_back
            try:
                await instances.run(instance, partial(settle, records))
            except (KafkaFailure, ApiError) as failed:
                # The client has its answer; if nothing is stored, the next owner reads it again.
                log.warning("consumer.not_settled instance=%s error=%s", instance.name, failed)
        if not is_read:
            raise Gone
        call.records += len(records)
        await call.end()


async def taken(asked: Asked, *, max_bytes: int, wait_s: float) -> list[Record]:
    """Return records; none if none came in time, or if no topic matches the pattern yet."""
    instance, ending = asked.instance, asked.ending
    if not instance.member.subscription:
        async with ending.cut():
            await asyncio.sleep(wait_s)
        return []
    take = partial(
        instance.member.take,
        max_bytes=max_bytes,
        min_bytes=instance.draft.min_bytes,
        wait_s=wait_s,
        is_over=ending.is_over,
    )
    return await asked.instances.run(instance, take)


async def look_for_topics(asked: Asked) -> None:
    """Let a consumer read the topics that its pattern means by now."""
    instance = asked.instance
    matching, now = instance.matching, time.monotonic()
    if matching is None or now - matching.looked_at < LOOK_FOR_TOPICS_S:
        return
    matching.looked_at = now
    # While no broker answers, the topics stay what they are.
    with suppress(KafkaFailure):
        await match(asked, matching.pattern)


async def match(asked: Asked, pattern: TopicPattern) -> None:
    """Subscribe a consumer to the topics that a pattern means, of those that its caller may read.

    The client library gets their names: it would compile a pattern with neither a limit of memory
    nor of time.
    """
    instance = asked.instance
    try:
        topics = await asked.instances.names_of(pattern, rights.readable(asked.call, pattern))
    except TooManyReadings as full:
        raise ApiError(Code.TOO_MANY, str(full)) from None
    wanted = Subscription(topics=tuple(topics))
    if wanted != instance.member.subscription:
        await asked.instances.run(instance, partial(instance.member.subscribe, wanted))


async def commit(asked: Asked) -> None:
    """Commit what was read. A given offset is that of the last processed record."""
    named = bodies.offsets_of(asked.body)
    next_ones = {place: offset + 1 for place, offset in named.items()}
    waits = asked.call.query().get("async", "false").lower() != "true"
    instance = asked.instance
    async with instance.turn():
        await asked.instances.run(
            instance,
            partial(instance.member.commit, next_ones if named else None, waits=waits),
        )
    await asked.call.answer(200, content_type=V2)


async def committed(asked: Asked) -> None:
    instance = asked.instance
    places = bodies.places_of(asked.body) or instance.member.assignment()
    rights.require_topics(asked.call, (place.topic for place in places))
    async with instance.turn():
        found = await asked.instances.run(instance, partial(instance.member.committed, places))
    offsets = [
        {**value_of(place), "offset": offset, "metadata": ""} for place, offset in found.items()
    ]
    await answered(asked, {"offsets": offsets})


async def seek(asked: Asked) -> None:
    await seek_to(asked, bodies.positions_of(asked.body))


async def seek_beginning(asked: Asked) -> None:
    await seek_all(asked, PositionKind.BEGINNING)


async def seek_end(asked: Asked) -> None:
    await seek_all(asked, PositionKind.END)


async def seek_all(asked: Asked, kind: PositionKind) -> None:
    await seek_to(asked, dict.fromkeys(bodies.places_of(asked.body), Position(kind=kind)))


async def seek_to(asked: Asked, positions: Mapping[Place, Position]) -> None:
    instance = asked.instance
    async with instance.turn():
        try:
            await asked.instances.run(instance, partial(instance.member.seek, positions))
        except NotAssigned as place:
            raise illegal(f"No current assignment for {place}: fetch once, or assign it") from None
    await done(asked)


async def read_instead(asked: Asked, wanted: Subscription) -> None:
    """Change a consumer's subscription, unless the new one is of another kind."""
    instance = asked.instance
    topics = [*wanted.topics, *(place.topic for place in wanted.places)]
    rights.require_topics(asked.call, topics)
    await asked.instances.create_topics(asked.call.caller, wanted.topics)
    async with instance.turn():
        if wanted:
            require_kind(instance, "partitions" if wanted.places else "topics")
        await asked.instances.run(instance, partial(instance.member.subscribe, wanted))
    await done(asked)


async def read_matching(asked: Asked, pattern: TopicPattern) -> None:
    """Change a consumer's subscription to a pattern."""
    instance = asked.instance
    async with instance.turn():
        require_kind(instance, "a pattern")
        await match(asked, pattern)
        instance.matching = Matching(pattern, time.monotonic())
    await done(asked)


def require_kind(instance: Instance, wanted: str) -> None:
    """Refuse a subscription of another kind than the present one."""
    present = instance.member.subscription
    kind = "partitions" if present.places else "topics"
    if instance.matching is not None:
        kind = "a pattern"
    if instance.is_subscribed and kind != wanted:
        raise ApiError(
            Code.SUBSCRIBED_OTHERWISE,
            "Subscription to topics, partitions and pattern are mutually exclusive: this consumer"
            f" has {kind} already; delete its subscription first",
        )


async def done(asked: Asked) -> None:
    await asked.call.answer(NO_CONTENT, content_type=V2)


async def answered(asked: Asked, value: object) -> None:
    await asked.call.answer(200, value, content_type=V2)


def check_accept(call: Call, instance: Instance) -> None:
    """Refuse a client that accepts only another format than that of its consumer."""
    own = EMBEDDED[instance.draft.form]
    given = call.headers.get("accept") or "*/*"
    types = [each.partition(";")[0].strip().lower() for each in given.split(",")]
    if {own, V2, bodies.JSON, "application/*", "*/*"} & set(types):
        return
    raise ApiError(
        Code.OTHER_FORMAT,
        "The requested embedded data format does not match the deserializer for this consumer"
        f" instance: Accept is {given[:200]!r}, ask for {own}",
    )


def number(call: Call, name: str, default: int) -> int:
    """Return a positive number from the query."""
    text = call.query().get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(bodies.MAX_OFFSET)):
        raise ApiError(
            Code.BAD_REQUEST, f"{name} is {text[: bodies.SHOWN]!r}: give a number from 1 on"
        )
    return max(int(text), 1)


def illegal(what: str) -> ApiError:
    return ApiError(Code.ILLEGAL_STATE, f"Illegal state: {what}")


def value_of(place: Place) -> dict[str, object]:
    return {"topic": place.topic, "partition": place.partition}
