"""What WebSockets answer: to handshakes, and to the frames of short sessions.

The same sessions run at the gateway's own port and beside the console.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from tests.answers.asking import PATIENCE_S, SKIPPED
from tests.answers.home import AnswersHome, cookie_header
from tests.answers.masking import Masks, written

PATH: Final = "/ws/v1"
END: Final = "end"
Place = dict[str, Any]


def record(home: AnswersHome) -> Iterator[str]:
    masks = home.masks()
    cookie = cookie_header(home.signed_in("vera"))
    callers = {**home.callers(), "vera": cookie}
    for name, address in (("gateway", home.gateway), ("web", home.web)):
        url = address.replace("http://", "ws://")
        yield from (f"## handshakes at {name}", "")
        for by, path, origin, spoken in HANDSHAKES:
            own = origin and origin.replace("{own}", address)
            opened = Opened(url + path, callers[by], origin=own, spoken=spoken)
            yield f"{by}: {path} origin={origin} sub-protocol={spoken}"
            yield from (f"    {masks.text(line)}" for line in opened.lines())
        yield ""
        for title, (by, script) in SESSIONS.items():
            yield from (f"## {title}, at {name}", "")
            # A cookie counts on pages of the same site alone.
            headers = {**callers[by], "Origin": address} if by == "vera" else callers[by]
            yield from session(url + PATH, headers, script, name, masks)
            yield ""


class Opened:
    """The outcome of a handshake; closed at once."""

    def __init__(
        self, url: str, headers: Mapping[str, str], *, origin: str | None, spoken: str | None
    ) -> None:
        self._url, self._headers, self._origin, self._spoken = url, headers, origin, spoken

    def lines(self) -> list[str]:
        protocols = [Subprotocol(self._spoken)] if self._spoken else None
        try:
            with connect(
                self._url,
                additional_headers=dict(self._headers),
                origin=Origin(self._origin) if self._origin else None,
                subprotocols=protocols,
                compression="deflate",
                proxy=None,
                open_timeout=PATIENCE_S,
            ) as made:
                chosen = f"101 sub-protocol={made.subprotocol}"
                extensions = (
                    made.response.headers.get("Sec-WebSocket-Extensions") if made.response else ""
                )
                return [f"{chosen} extensions={extensions or None}"]
        except InvalidStatus as refused:
            answer = refused.response
            names = sorted(
                f"{name.lower()}: {value}"
                for name, value in answer.headers.raw_items()
                if name.lower() not in SKIPPED
            )
            return [f"{answer.status_code} {'; '.join(names)}", *body_of(answer.body)]


def body_of(body: bytes | bytearray | None) -> list[str]:
    text = (body or b"").decode()
    try:
        return written(Masks({}).json(json.loads(text)))
    except ValueError:
        return text.splitlines()


def session(
    url: str,
    headers: Mapping[str, str],
    script: Sequence[tuple[Any, ...]],
    name: str,
    masks: Masks,
) -> Iterator[str]:
    """Send frames, and write those that come until the named one, or until the socket ends."""
    with connect(
        url, additional_headers=dict(headers), proxy=None, open_timeout=PATIENCE_S, max_size=None
    ) as socket:
        for said, *until in script:
            if said is not None:
                yield masks.text(f"> {shown(said)}")
                # Groups keep what they have committed.
                text = said if isinstance(said, str | bytes) else json.dumps(said)
                socket.send(text.replace("{name}", name) if isinstance(text, str) else text)
            for kind in until:
                yield from (f"    {masks.text(line)}" for line in heard(socket, kind))


def shown(said: Any) -> str:
    text = said if isinstance(said, str | bytes) else json.dumps(said)
    return repr(text[:80]) if isinstance(text, bytes) else text[:300]


def heard(socket: ClientConnection, until: str | int) -> list[str]:
    """Return frames up to one of a kind, or up to a number of records, or the end."""
    lines: list[str] = []
    records: dict[tuple[str, int], list[Any]] = {}
    while True:
        try:
            text = socket.recv(PATIENCE_S)
        except ConnectionClosed as ended:
            close = ended.rcvd
            return [*lines, f"closed {close.code if close else None}"]
        frame = json.loads(text)
        if frame["type"] == "batch":
            # Records of one partition come in one frame or in several.
            records.setdefault((frame["topic"], frame["partition"]), []).extend(frame["records"])
            if isinstance(until, int) and sum(map(len, records.values())) >= until:
                return lines + [
                    line
                    for (topic, partition), found in sorted(records.items())
                    for line in (f"batch {topic}-{partition}", *written(Masks({}).json(found)))
                ]
            continue
        lines += written(Masks({}).json(frame))
        if frame["type"] == until:
            return lines


# Who opens it, the path, the origin and the sub-protocol.
HANDSHAKES: Final[Sequence[tuple[str, str, str | None, str | None]]] = (
    ("nobody", PATH, None, None),
    ("nobody", PATH, None, "samsa.v1"),
    ("nobody", PATH, None, "none.v1"),
    ("nobody", PATH, "{own}", None),
    ("nobody", PATH, "https://pages.example", None),
    ("nobody", PATH, "null", None),
    ("admin", PATH, None, None),
    ("admin", PATH, None, "samsa.v1"),
    ("admin", PATH, "{own}", None),
    ("admin", PATH, "https://pages.example", None),
    ("stranger", PATH, None, None),
    ("revoked", PATH, None, None),
    ("vera", PATH, None, None),
    ("vera", PATH, "{own}", None),
    ("vera", PATH, "https://pages.example", None),
    ("admin", f"{PATH}?token=x", None, None),
    ("admin", f"{PATH}/", None, None),
    *(
        (by, path, None, None)
        for by in ("nobody", "admin")
        for path in (
            "/",
            "/ws",
            "/ws/v2",
            "/none-such",
            "/events",
            "/sse/v1",
            "/topics",
            "/v3/clusters",
            "/connect/connectors",
            "/health",
        )
    ),
)
READ: Final[Place] = {"topic": "orders", "partition": 0}
OTHER: Final[Place] = {"topic": "orders", "partition": 1}
PRODUCED: Final = {"type": "produce", "topic": "quiet"}
FRAMES: Final[Sequence[tuple[Any, ...]]] = (
    (None, "ready"),
    ({"type": "ping"}, "pong"),
    ({"type": "ping", "id": "p"}, "pong"),
    ({"type": "none"}, "error"),
    ({"type": "ping", "bogus": 1}, "error"),
    ({"type": "credit", "sid": "none", "records": 1}, "error"),
    ({"type": "ack", "sid": "none", "offsets": [READ | {"offset": 1}]}, "error"),
    ({"type": "unsubscribe", "sid": "none"}, "error"),
    ({"type": "auth", "token": "none"}, END),
)
PRODUCE: Final[Sequence[tuple[Any, ...]]] = (
    (None, "ready"),
    (PRODUCED | {"id": "1", "value": "v", "key": "k"}, "receipt"),
    (PRODUCED | {"id": "2", "value": {"a": 1}, "format": "json"}, "receipt"),
    (PRODUCED | {"id": "3", "value": "AAE=", "format": "binary"}, "receipt"),
    (PRODUCED | {"id": "4", "value": "%", "format": "binary"}, "error"),
    (PRODUCED | {"id": "5", "value": "v", "partition": 99}, "error"),
    (PRODUCED | {"id": "6", "value": 5}, "error"),
    (PRODUCED | {"value": "v"}, "error"),
    ({"type": "produce", "id": "7", "topic": "a b", "value": "v"}, "error"),
    (PRODUCED | {"id": "8", "headers": [{"name": "h", "value": "AAE="}]}, "receipt"),
)
SUBSCRIBED: Final = {"type": "subscribe", "credit": {"records": 100}, "from": "earliest"}
CONSUME: Final[Sequence[tuple[Any, ...]]] = (
    (None, "ready"),
    (SUBSCRIBED | {"sid": "a", "assign": [READ], "credit": {"records": 2}}, "assigned", 2),
    (SUBSCRIBED | {"sid": "a", "assign": [READ]}, "error"),
    ({"type": "credit", "sid": "a", "records": 10}, 1),
    ({"type": "seek", "sid": "a", "offsets": [READ | {"offset": 1}]}, 2),
    ({"type": "pause", "sid": "a"},),
    ({"type": "resume", "sid": "a"},),
    ({"type": "ping"}, "pong"),
    ({"type": "unsubscribe", "sid": "a"}, "revoked"),
    (SUBSCRIBED | {"sid": "b", "topics": ["orders"], "format": "json"}, "assigned", 6),
    (SUBSCRIBED | {"sid": "c", "pattern": "ord.*", "format": "binary"}, "assigned", 6),
    (SUBSCRIBED | {"sid": "d"}, "error"),
    (SUBSCRIBED | {"sid": "d", "topics": ["none-such"]}, "error"),
    (SUBSCRIBED | {"sid": "d", "pattern": "("}, "error"),
    (SUBSCRIBED | {"sid": "d", "assign": [READ | {"partition": 99}]}, "error"),
    (
        SUBSCRIBED
        | {
            "sid": "d",
            "topics": ["orders"],
            "from": {"time_ms": 1, "offsets": [READ | {"offset": 0}]},
        },
        "error",
    ),
    (SUBSCRIBED | {"sid": "e", "from": {"offsets": [OTHER | {"offset": 1}]}}, "assigned", 2),
)
GROUPED: Final[Sequence[tuple[Any, ...]]] = (
    (None, "ready"),
    (SUBSCRIBED | {"sid": "g", "group": "sockets-{name}", "topics": ["orders"]}, "assigned", 6),
    ({"type": "ack", "sid": "g", "offsets": [READ | {"offset": 3}]}, "acked"),
    (
        {"type": "ack", "sid": "g", "offsets": [{"topic": "quiet", "partition": 0, "offset": 1}]},
        "error",
    ),
    ({"type": "unsubscribe", "sid": "g"}, "revoked"),
)
SESSIONS: Final[Mapping[str, tuple[str, Sequence[tuple[Any, ...]]]]] = {
    "frames": ("admin", FRAMES),
    "produce": ("admin", PRODUCE),
    "consume": ("admin", CONSUME),
    "a group": ("admin", GROUPED),
    "what a reader may not do": (
        "reader",
        (
            (None, "ready"),
            (PRODUCED | {"id": "1", "value": "v"}, "error"),
            (SUBSCRIBED | {"sid": "a", "topics": ["quiet"]}, "error"),
            (SUBSCRIBED | {"sid": "a", "topics": ["orders"], "group": "g"}, "error"),
            (SUBSCRIBED | {"sid": "a", "topics": ["orders"]}, "assigned", 6),
        ),
    ),
    "a cookie": ("vera", ((None, "ready"), ({"type": "ping"}, "pong"))),
    "no JSON": ("admin", ((None, "ready"), ("{", "error"), ("[]", "error"), ("5", "error"))),
    "no token at first": ("nobody", (({"type": "ping"}, END),)),
    "a wrong token in a frame": ("nobody", (({"type": "auth", "token": "none"}, END),)),
    "a binary message": ("admin", ((None, "ready"), (b"{}", END))),
}
