"""The client of the state that workers share. Calls are short; None means no answer.

Knows no Django and no calls.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gateway.shared.link import Address, Link, LinkError, address_of, opened
from gateway.shared.subscriber import Subscriber

T = TypeVar("T")
log: Final = logging.getLogger(__name__)

# A call over a unix socket takes a millisecond; no client's call may wait for a server that hangs.
DEADLINE_SECONDS: Final = 0.25
# After a failure, nothing is sent for this long, so that not every call waits for its deadline.
PAUSE_SECONDS: Final = 1.0
# Calls are short, so few run at the same time; further ones wait for a connection.
MAX_CONNECTIONS: Final = 8
# Keys of one kind, including those of others, are scanned in pieces, up to this limit.
SCAN_COUNT: Final = 500
MAX_FOUND: Final = 10_000
# Rows of seats in one message, of a kilobyte each.
SEATS_AT_ONCE: Final = 100
# The prefix of all keys, because the server may also hold other users' data.
PREFIX: Final = "samsa"
# Sets or renews the owner, unless there is another one.
CLAIM: Final = """
local owner = redis.call('GET', KEYS[1])
if owner == false or owner == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
return 0
"""
RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
# Stores how many seats a worker gives to a name, unless all workers would give more than the limit,
# or a later count came before; returns the seats of the other workers. A field is a worker.
SEAT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local own, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local order, ttl = tonumber(ARGV[4]), tonumber(ARGV[5])
local others, is_latest = 0, true
local fields = redis.call('HGETALL', KEYS[1])
for place = 1, #fields, 2 do
  local seats, number, over = string.match(fields[place + 1], '^(%d+) (%d+) (%d+)$')
  if fields[place] == ARGV[1] then
    is_latest = tonumber(number) < order
  elseif tonumber(over) < now then
    redis.call('HDEL', KEYS[1], fields[place])
  else
    others = others + tonumber(seats)
  end
end
if is_latest and others + own <= most then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%d %d %d', own, order, now + ttl))
  redis.call('PEXPIRE', KEYS[1], ttl)
end
return others
"""
# The first call of a window sets its expiry.
COUNT: Final = """
local total = redis.call('INCRBY', KEYS[1], ARGV[1])
if total == tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return total
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seated:
    """The seats of one kind that a worker gives to a name, of `most` of all workers together.

    Of two rows of a worker the one with the higher `order` is the latest.
    """

    what: str
    name: str
    seats: int
    most: int
    order: int


class Shared:
    """Belongs to one event loop. `cluster` separates clusters that share a server."""

    def __init__(self, url: str, *, cluster: str) -> None:
        self._address: Address | None = address_of(url) if url else None
        self._idle: list[Link] = []
        self._places = asyncio.Semaphore(MAX_CONNECTIONS)
        self._prefix = f"{PREFIX}:{cluster}"
        self._is_lost = False
        self._asks_again_at = 0.0
        self._subscriber: Subscriber | None = None

    @property
    def is_there(self) -> bool:
        """Tell whether the last call was answered; also true before the first one."""
        return self._address is not None and not self._is_lost

    # --- owners ------------------------------------------------------------------------------

    async def claim(self, kind: str, name: str, *, owner: str, ttl_s: float) -> bool | None:
        """Claim a name for an owner, or renew the claim; False if it has another owner."""
        key = self._key(kind, name)
        got = await self._ask_one("EVAL", CLAIM, 1, key, owner, _ms(ttl_s))
        return None if got is None else bool(got)

    async def renew(
        self, kind: str, names: Sequence[str], *, owner: str, ttl_s: float
    ) -> Sequence[str] | None:
        """Renew many claims; return the names that have another owner by now."""
        commands = [("EVAL", CLAIM, 1, self._key(kind, each), owner, _ms(ttl_s)) for each in names]
        held = await self._ask(lambda link: link.ask(commands))
        if held is None:
            return None
        return [name for name, is_held in zip(names, held, strict=True) if not is_held]

    async def release(self, kind: str, name: str, *, owner: str) -> None:
        """Release a name if it has this owner."""
        key = self._key(kind, name)
        await self._ask_one("EVAL", RELEASE, 1, key, owner)

    async def owner_of(self, kind: str, name: str) -> str | None:
        """Return the owner of a name; None also if it has none: `is_there` tells the two apart."""
        found = await self._ask_one("GET", self._key(kind, name))
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else None

    # --- counts ------------------------------------------------------------------------------

    async def count(self, kind: str, name: str, amount: int, *, window_s: float) -> int | None:
        """Add to the count of all workers in this window; return the sum."""
        key = self._key(kind, name)
        total = await self._ask_one("EVAL", COUNT, 1, key, amount, _ms(window_s))
        return None if total is None else int(total)

    async def seat(
        self, rows: Sequence[Seated], *, worker: str, ttl_s: float
    ) -> Sequence[int] | None:
        """Note a worker's seats, each unless they are too many; return those of the others."""
        commands = [
            (
                *("EVAL", SEAT, 1, self._key("seats", f"{row.what}:{row.name}")),
                *(worker, row.seats, row.most, row.order, _ms(ttl_s)),
            )
            for row in rows
        ]

        async def told(link: Link) -> list[int]:
            found: list[int] = []
            for start in range(0, len(commands), SEATS_AT_ONCE):
                found += await link.ask(commands[start : start + SEATS_AT_ONCE])
            return found

        return await self._ask(told)

    # --- values ------------------------------------------------------------------------------

    async def put(self, kind: str, name: str, value: bytes, *, ttl_s: float) -> bool:
        """Store a value for others; tell whether it was stored."""
        key = self._key(kind, name)
        return bool(await self._ask_one("SET", key, value, "PX", _ms(ttl_s)))

    async def all_of(self, kind: str) -> Mapping[str, bytes] | None:
        """Return the values of a kind from all workers, by name."""
        start = self._key(kind, "")
        scan = ("MATCH", f"{_literal(start)}*", "COUNT", SCAN_COUNT)

        async def found(link: Link) -> dict[str, bytes]:
            keys: set[bytes] = set()
            cursor = b"0"
            while len(keys) < MAX_FOUND:
                [[cursor, some]] = await link.ask([("SCAN", cursor, *scan)])
                keys.update(some)
                if cursor == b"0":
                    break
            if not keys:
                return {}
            listed = list(keys)
            [values] = await link.ask([("MGET", *listed)])
            return {
                key.decode("utf-8", "replace")[len(start) :]: value
                for key, value in zip(listed, values, strict=True)
                # A key that expired meanwhile has no value.
                if isinstance(value, bytes)
            }

        return await self._ask(found)

    # --- news --------------------------------------------------------------------------------

    async def publish(self, channel: str, value: bytes) -> bool:
        """Send to all workers; tell whether it was sent. Disconnected workers miss it."""
        key = self._key("news", channel)
        return await self._ask_one("PUBLISH", key, value) is not None

    def listen(self, channel: str, heard: Callable[[bytes], None]) -> None:
        """Call `heard` on the loop with everything published from now on, until `close`."""
        if self._address is None:
            return
        if self._subscriber is None:
            self._subscriber = Subscriber(self._address, lost=self._lose, pause_s=PAUSE_SECONDS)
        self._subscriber.listen(self._key("news", channel), heard)

    # --- life --------------------------------------------------------------------------------

    def drain(self) -> None:
        """Do nothing: draining parts still release what they own."""

    async def close(self) -> None:
        if self._subscriber is not None:
            await self._subscriber.close()
        while self._idle:
            self._idle.pop().close()

    async def _ask_one(self, *words: str | bytes | int) -> Any:  # noqa: ANN401 - as `Link.next`
        answers = await self._ask(lambda link: link.ask([words]))
        return None if answers is None else answers[0]

    async def _ask(self, question: Callable[[Link], Awaitable[T]]) -> T | None:
        if self._address is None or time.monotonic() < self._asks_again_at:
            return None
        try:
            async with asyncio.timeout(DEADLINE_SECONDS), self._places:
                answer = await self._asked(self._address, question)
        except (LinkError, OSError, TimeoutError) as error:
            self._lose(error)
            return None
        if self._is_lost:
            self._is_lost = False
            log.warning("shared.found")
        return answer

    async def _asked(self, address: Address, question: Callable[[Link], Awaitable[T]]) -> T:
        link = self._idle.pop() if self._idle else await opened(address)
        try:
            answer = await question(link)
        except BaseException:
            # Also after a cancelled wait: its answer would be taken for that of the next call.
            link.close()
            raise
        self._idle.append(link)
        return answer

    def _lose(self, error: Exception) -> None:
        self._asks_again_at = time.monotonic() + PAUSE_SECONDS
        # They are to the same server, and broken too.
        while self._idle:
            self._idle.pop().close()
        if not self._is_lost:
            self._is_lost = True
            # Never log the URL, which may hold a password.
            log.warning("shared.lost error=%s", type(error).__name__)

    def _key(self, kind: str, name: str) -> str:
        return f"{self._prefix}:{kind}:{name}"


def _ms(seconds: float) -> int:
    return max(1, int(seconds * 1_000))


def _literal(text: str) -> str:
    """Return a pattern that matches exactly the text."""
    return "".join(f"\\{sign}" if sign in "*?[]\\" else sign for sign in text)
