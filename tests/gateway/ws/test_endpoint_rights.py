"""Who may do what by streams and sockets: tokens, operations and names, and what ends them."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from urllib.parse import quote

import pytest
from django.db import connections
from django.test import override_settings
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateway.access.token_scopes import Scope, grants_of, together
from tests.builders import tokens
from tests.gateway.ws.door import ALLOWED, TOPICS, ProgramsDoor, Socket, Stream, programs_door

pytestmark = pytest.mark.slow

PATTERNS = ("*", "orders", "orders*", "orders.*", "payments")
GROUPS = ("billing", "audit")
GROUP_PATTERNS = ("*", "bill*", "audit")
LINES = "application/x-ndjson"
EVENTS = "text/event-stream"
# A revoked token ends what it has opened within this, after a hint and without one.
HINTED_S = 1.0
POLLED_S = 5.0


def fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(
        name == pattern or (pattern[-1] == "*" and name.startswith(pattern[:-1]))
        for pattern in patterns
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a token was made for."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    group: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        parts = [f"{len(each)}-{'-'.join(each)}" for each in (self.read, self.write, self.group)]
        return "t." + "_".join(parts).replace("*", "any")

    def may(self, asked: "Asked") -> bool:
        return (
            all(fits(topic, self.read) for topic in asked.reads)
            and all(fits(topic, self.write) for topic in asked.writes)
            and all(fits(group, self.group) for group in asked.groups)
            and (not asked.is_pattern or bool(self.read))
        )


MADE = [
    *(Made(read=(pattern,)) for pattern in PATTERNS),
    *(Made(write=(pattern,)) for pattern in PATTERNS),
    *(Made(group=(pattern,)) for pattern in GROUP_PATTERNS),
    *(
        Made(read=(pattern,), write=("payments",), group=(group,))
        for pattern in PATTERNS
        for group in GROUP_PATTERNS
    ),
    Made(read=("orders", "payments"), group=("billing", "audit")),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Something that is asked, and which rights it needs."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    # It means what the caller may read, and needs some right to read.
    is_pattern: bool = False
    frame: dict[str, object] | None = None
    target: str = ""
    accept: str = "*/*"


def reading(**frame: object) -> dict[str, object]:
    return {"type": "subscribe", "sid": "a", "credit": {"records": 0}, **frame}


def place(topic: str) -> dict[str, object]:
    return {"topic": topic, "partition": 0}


FRAMES = [
    *(
        Asked(writes=(topic,), frame={"type": "produce", "id": "p", "topic": topic, "value": "v"})
        for topic in TOPICS
    ),
    *(Asked(reads=(topic,), frame=reading(topics=[topic])) for topic in TOPICS),
    *(Asked(reads=(topic,), frame=reading(assign=[place(topic)])) for topic in TOPICS),
    *(
        Asked(
            reads=(topic,),
            frame=reading(**{"from": {"offsets": [{**place(topic), "offset": 0}]}}),
        )
        for topic in TOPICS
    ),
    *(Asked(reads=pair, frame=reading(topics=[*pair])) for pair in combinations(TOPICS, 2)),
    Asked(is_pattern=True, frame=reading(pattern=".*")),
    *(
        Asked(reads=(topic,), groups=(group,), frame=reading(topics=[topic], group=group))
        for topic in TOPICS
        for group in GROUPS
    ),
    *(
        Asked(is_pattern=True, groups=(group,), frame=reading(pattern="none", group=group))
        for group in GROUPS
    ),
]
TARGETS = [
    *(
        Asked(reads=(topic,), target=f"/v1/topics/{topic}/records?from=end&wait=0", accept=accept)
        for topic in TOPICS
        for accept in ("application/json", LINES, EVENTS)
    ),
    *(Asked(reads=(topic,), target=f"/sse/v1?topics={topic}") for topic in TOPICS),
    Asked(is_pattern=True, target="/sse/v1?pattern=.*"),
    *(
        Asked(reads=pair, target=f"/sse/v1?topics={quote(','.join(pair))}")
        for pair in combinations(TOPICS, 2)
    ),
]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramsDoor]:
    with programs_door(tmp_path_factory.mktemp("door")) as door:
        yield door


def token(made: Made, *, suffix: str) -> str:
    grants = [
        grant
        for scope, patterns in (
            (Scope.READ, made.read),
            (Scope.WRITE, made.write),
            (Scope.GROUP, made.group),
        )
        for pattern in patterns
        for grant in grants_of(scope, pattern)
    ]
    return tokens.token(f"{made.name}-{suffix}", grants=together(grants))


async def is_let(socket: Socket, asked: Asked) -> bool:
    """Say a frame, and tell whether it was taken; what it began is ended."""
    assert asked.frame is not None
    await socket.say(**asked.frame)
    if asked.frame["type"] == "produce":
        [*_, told] = [await socket.hear()]
    else:
        await socket.say(type="ping")
        [told, *_] = await socket.hear_until("pong")
        await socket.say(type="unsubscribe", sid="a")
        await socket.say(type="ping")
        await socket.hear_until("pong")
    assert told["type"] != "error" or told["error_code"] == 40301, told
    return bool(told["type"] != "error")


def test_the_matrix_has_enough_cases(report: Callable[[str], None]) -> None:
    cases = len(MADE) * (len(FRAMES) + len(TARGETS))
    report(f"{len(MADE)} tokens, {len(FRAMES)} frames, {len(TARGETS)} addresses: {cases} cases")
    assert cases >= 500


def test_a_socket_does_what_its_token_allows_and_nothing_else(door: ProgramsDoor) -> None:
    texts = {made: token(made, suffix="socket") for made in MADE}

    async def work() -> list[tuple[Made, Asked]]:
        wrong: list[tuple[Made, Asked]] = []
        for made, text in texts.items():
            async with door.socket(text) as socket:
                wrong += [
                    (made, asked)
                    for asked in FRAMES
                    if await is_let(socket, asked) is not made.may(asked)
                ]
        return wrong

    assert asyncio.run(work()) == []


def test_a_stream_shows_what_its_token_allows_and_nothing_else(door: ProgramsDoor) -> None:
    texts = {made: token(made, suffix="stream") for made in MADE}

    async def work() -> list[tuple[Made, Asked, int]]:
        wrong = []
        for made, text in texts.items():
            for asked in TARGETS:
                async with door.stream(asked.target, text, asked.accept) as stream:
                    if stream.status != (200 if made.may(asked) else 403):
                        wrong.append((made, asked, stream.status))
        return wrong

    assert asyncio.run(work()) == []


@pytest.mark.alone
@pytest.mark.parametrize("within_s", [HINTED_S, POLLED_S])
def test_a_revoked_token_ends_all_that_it_has_opened(door: ProgramsDoor, within_s: float) -> None:
    name = f"ended-{within_s:g}"
    text = tokens.token(name, grants=[*grants_of(Scope.READ), *grants_of(Scope.GROUP)])

    def revoke() -> float:
        revoked_at = time.monotonic()
        with override_settings(REDIS_URL=door.shared_url if within_s == HINTED_S else ""):
            tokens.revoke(name)
        connections.close_all()
        return revoked_at

    async def closed(socket: Socket) -> tuple[int, float]:
        with suppress(ConnectionClosed):
            while True:
                await socket.hear()
        return socket.connection.close_code, time.monotonic()

    async def said(stream: Stream) -> tuple[str, float]:
        return await stream.rest(), time.monotonic()

    async def work() -> None:
        async with (
            door.stream("/sse/v1?topics=orders", text) as events,
            door.stream("/v1/topics/orders/records", text, LINES) as lines,
            door.socket(text) as assigned,
            door.socket(text) as member,
            door.socket(text) as pattern,
        ):
            await assigned.say(**reading(topics=["orders"]))
            await member.say(**reading(topics=["orders"], group="ended"))
            await pattern.say(**reading(pattern="orders.*"))
            for socket in (assigned, member, pattern):
                await socket.hear_until("assigned")
            revoked_at = await asyncio.to_thread(revoke)
            streams = await asyncio.gather(said(events), said(lines))
            sockets = await asyncio.gather(*map(closed, (assigned, member, pattern)))
        assert all('"error_code":40101' in told for told, _ in streams), streams
        assert [code for code, _ in sockets] == [4401] * 3
        assert max(at for _, at in [*streams, *sockets]) - revoked_at < within_s

    asyncio.run(work())


def test_a_page_of_a_site_that_is_not_named_opens_no_socket(door: ProgramsDoor) -> None:
    text = tokens.token("paged", grants=grants_of(Scope.READ))
    shown = {"Authorization": f"Bearer {text}"}

    async def opened(origin: str | None) -> int:
        headers = {} if origin is None else {"Origin": origin}
        try:
            async with connect(door.sockets, additional_headers={**shown, **headers}):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    async def work() -> None:
        for origin in ("https://evil.example", "null", "http://127.0.0.1:1", f"{ALLOWED}.evil"):
            assert await opened(origin) == 403
        assert await opened(ALLOWED) == 101
        assert await opened(None) == 101, "a program is no browser"
        assert await opened(f"http://127.0.0.1:{door.port}") == 101

    asyncio.run(work())


def test_a_token_is_in_no_address_and_in_no_log(
    door: ProgramsDoor, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tokens.token(
        "logged", grants=together([*grants_of(Scope.READ), *grants_of(Scope.WRITE)])
    )
    caplog.set_level(logging.DEBUG)
    # Whatever another test's server has made of them.
    for name in ("uvicorn", "uvicorn.access", "uvicorn.error"):
        caplog.set_level(logging.DEBUG, logger=name)
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)

    async def refused(address: str) -> int:
        with pytest.raises(InvalidStatus) as refusal:
            await connect(address)
        return refusal.value.response.status_code

    async def use() -> None:
        async with connect(door.sockets) as connection:
            socket = Socket(connection)
            await socket.say(type="auth", token=text)
            await socket.hear_until("ready")
            await socket.say(type="produce", id="1", topic="orders", value="v")
            await socket.hear_until("receipt")
            await socket.say(type="auth", token=f"{text}x")
            await socket.hear_until("error")
        for target in ("/sse/v1?topics=orders", "/v1/topics/orders/records?wait=0"):
            async with door.stream(target, text) as stream:
                assert stream.status == 200

    async def work() -> None:
        await use()
        assert "GET /sse/v1" in caplog.text
        assert text not in caplog.text

        # Where one is put into an address all the same, nothing is opened by it.
        assert await refused(f"{door.sockets}?token={text}") == 400
        for target in (f"/sse/v1?topics=orders&token={text}", f"/sse/v1?access_token={text}"):
            async with door.stream(target, text) as stream:
                assert stream.status == 400

    asyncio.run(work())
