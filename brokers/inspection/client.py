"""Requests pages of a broker's inspection port, for the console, a collector or a command.

Blocking, with a deadline on every call; Django-free, and needs only the broker's address and
secret. One object keeps one connection, and opens a new one when the broker has dropped it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from brokers.http.address import Address
from brokers.http.client import Connection
from brokers.http.protocol import NoResponse

DEADLINE_SECONDS: Final = 5.0
# A snapshot of 100,000 partitions takes about 8 MB, one of 200,000 groups and as many offsets 30
# MB; a larger page cannot come from a broker of Samsa.
MAX_PAGE_BYTES: Final = 256 * 1024 * 1024
# A searching broker reports progress four times a second, except while it reads one large batch.
SEARCH_DEADLINE_SECONDS: Final = 30.0
# Key, value and headers with 1 MiB each, as text.
MAX_LINE_BYTES: Final = 16 * 1024 * 1024
# Places of one request for times: a broker takes 500 of them, in 16 KiB of address and headers.
MAX_PLACES: Final = 500
MAX_TARGET_BYTES: Final = 8 * 1024


class InspectionFailed(Exception):
    """A wrong response of a broker, or none; the message names the broker and the fault.

    `status` is HTTP's if the broker has refused.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Inspection:
    """The inspection port of one broker. Not thread-safe.

    A client that outlives a rotation of keys passes a function as `secret`, which is called for
    every page.
    """

    def __init__(
        self,
        host: str,
        port: int,
        secret: str | Callable[[], str],
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self.name = f"{host}:{port}"
        self._secret = secret
        self._connection = Connection(
            Address(host=host, port=port), wait_seconds=deadline_seconds, max_bytes=MAX_PAGE_BYTES
        )
        self._run = ""
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def is_serving(self) -> bool:
        """Tell whether the broker has registered and serves data."""
        status, _page = self._get("/health", {200, 503})
        return status == 200

    def metrics(self) -> str:
        """Return the metrics as Prometheus text."""
        return self._get("/metrics", {200})[1].decode()

    def feed(self) -> Mapping[str, Any]:
        """Return the changes since the last call: a snapshot the first time, steps after that."""
        _status, page = self._get(f"/feed?run={self._run}&since={self._number}", {200})
        try:
            feed: Mapping[str, Any] = json.loads(page)
            self._run, self._number = str(feed["run"]), int(feed["number"])
        except (ValueError, KeyError, TypeError) as error:
            raise InspectionFailed(f"{self.name} sent a feed that cannot be read") from error
        return feed

    def times(self, places: Sequence[tuple[str, int, int]]) -> list[int | str | None]:
        """Return the write times of the first records at or behind each place, in milliseconds.

        A place is a topic, an index and an offset. None: there is no record; a text: why the broker
        has no answer, mostly because it does not lead the partition.
        """
        found: list[int | str | None] = []
        for target, number in _questions(places):
            _status, page = self._get(target, {200})
            try:
                times = json.loads(page)["times"]
                found += [time["error"] if isinstance(time, dict) else time for time in times]
            except (ValueError, KeyError, TypeError) as error:
                raise InspectionFailed(f"{self.name} sent times that cannot be read") from error
            if len(times) != number:
                raise InspectionFailed(
                    f"{self.name} sent {len(times)} times and was asked for {number}"
                )
        return found

    def search(
        self,
        question: Mapping[str, Any],
        *,
        on_open: Callable[[Callable[[], None]], None] | None = None,
    ) -> Iterator[Mapping[str, Any]]:
        """Search records of one partition; yield lines as the broker sends them.

        `docs/howto/inspect-a-broker.md` has the form of questions and lines. The search ends when
        the iterator is closed. It has a connection of its own, so that other pages can be requested
        meanwhile; InspectionFailed also if the search itself failed. `on_open` gets a function that
        ends the search from another thread, also while this one waits for a line.
        """
        connection = Connection(
            self._connection.address,
            wait_seconds=SEARCH_DEADLINE_SECONDS,
            max_bytes=MAX_LINE_BYTES,
        )
        try:
            connection.open()
            if on_open is not None:
                on_open(connection.cut)
            body = json.dumps(question).encode()
            head = connection.begin("POST", "/search", headers=self._headers(), body=body)
            if head.status != 200:
                raise self._refused("/search", head.status, connection.read())
            yield from self._lines(_split(connection.pieces()))
        except NoResponse as error:
            raise InspectionFailed(f"{self.name} did not answer /search: {error}") from error
        finally:
            connection.close()

    def _lines(self, lines: Iterator[bytes]) -> Iterator[Mapping[str, Any]]:
        kind = ""
        for raw in lines:
            try:
                line = json.loads(raw)
                kind = line["kind"]
            except (ValueError, KeyError, TypeError) as error:
                raise InspectionFailed(f"{self.name} sent a line that cannot be read") from error
            if kind == "error":
                raise InspectionFailed(f"{self.name}: {line.get('message')}")
            yield line
        if kind != "done":
            raise InspectionFailed(f"{self.name} ended a search without a verdict")

    def _get(self, target: str, expected: set[int]) -> tuple[int, bytes]:
        try:
            response = self._connection.exchange("GET", target, headers=self._headers())
        except NoResponse as error:
            raise InspectionFailed(f"{self.name} did not answer {target}: {error}") from error
        if response.status not in expected:
            raise self._refused(target, response.status, response.body)
        return response.status, response.body

    def _refused(self, target: str, status: int, page: bytes) -> InspectionFailed:
        sentence = page.decode("utf-8", "replace").strip()
        return InspectionFailed(
            f"{self.name} answered {target} with {status}: {sentence}", status=status
        )

    def _headers(self) -> dict[str, str]:
        secret = self._secret if isinstance(self._secret, str) else self._secret()
        return {"Authorization": f"Bearer {secret}"}


def _split(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a body, except empty ones; a line that is too long comes cut."""
    rest = bytearray()
    for piece in pieces:
        *lines, tail = piece.split(b"\n")
        for line in lines:
            rest += line
            if rest:
                yield bytes(rest)
            rest.clear()
        rest += tail
        if len(rest) > MAX_LINE_BYTES:
            break
    if rest:
        yield bytes(rest)


def _questions(places: Sequence[tuple[str, int, int]]) -> Iterator[tuple[str, int]]:
    """Yield targets that a broker accepts, each with the number of places in it."""
    target, number = "", 0
    for topic, index, offset in places:
        place = f"at={quote(topic)}:{index}:{offset}"
        if number == MAX_PLACES or len(target) + len(place) > MAX_TARGET_BYTES:
            yield target, number
            target, number = "", 0
        target += ("&" if target else "/inspect/times?") + place
        number += 1
    if number:
        yield target, number
