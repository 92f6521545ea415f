"""Commands of stories about WebSockets of the gateway.

No socket is open: a story says what the client sends and what happens in the gateway, and sees the
actions that the session decides on. The service of Kafka is the story itself.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role
from gateway.kafka.values import Delivered, Place, Record
from gateway.ws.actions import (
    Action,
    Close,
    Commit,
    Drop,
    Feed,
    Hold,
    Identify,
    Join,
    LetGo,
    Move,
    Open,
    Say,
    Send,
)
from gateway.ws.session import Session
from tests.stories.script import Commands, StoryError, counted

CLUSTER = "c"


def commands(_folder: Path) -> Commands:
    socket = Socket()
    return {
        "connect": socket.connect,
        "token": socket.token,
        "auth": socket.auth,
        "produce": socket.produce,
        "written": socket.written,
        "subscribe": socket.subscribe,
        "opened": socket.opened,
        "arrive": socket.arrive,
        "credit": socket.credit,
        "unsubscribe": socket.unsubscribe,
        "send-text": socket.send_text,
        "no-token-in-time": socket.no_token_in_time,
        "drain": socket.drain,
    }


class Socket:
    """One socket, the tokens of the console, and the records of the topic orders."""

    def __init__(self) -> None:
        self._roles: dict[str, Role] = {}
        self._token = ""
        self._session = Session(CLUSTER)
        self._topics: dict[str, str] = {}
        self._waiting: dict[str, list[Record]] = {}
        self._end = 0

    # -- what the client does --------------------------------------------------------------------

    def connect(self) -> Iterator[str]:
        self._session = Session(CLUSTER)
        yield "the socket is open, its client unknown"

    def auth(self, token: str) -> Iterator[str]:
        self._token = token
        yield from self._frame(type="auth", token=token)

    def produce(self, id: str, topic: str, value: str) -> Iterator[str]:  # noqa: A002 - the frame's
        self._topics[id] = topic
        yield from self._frame(type="produce", id=id, topic=topic, value=value)

    def subscribe(self, sid: str, topic: str, *, credit: int) -> Iterator[str]:
        yield from self._frame(
            type="subscribe", sid=sid, topics=[topic], credit={"records": credit}
        )

    def credit(self, sid: str, records: int) -> Iterator[str]:
        yield from self._frame(type="credit", sid=sid, records=records)

    def unsubscribe(self, sid: str) -> Iterator[str]:
        yield from self._frame(type="unsubscribe", sid=sid)

    def send_text(self, text: str) -> Iterator[str]:
        """Send a frame as it is written here."""
        yield from self._done(self._session.text_received(text))

    # -- what happens in the gateway -------------------------------------------------------------

    def token(self, name: str, role: str) -> Iterator[str]:
        """Make a token with a role, or change its role; sockets learn of it within seconds."""
        self._roles[name] = Role(role)
        yield f"token {name} is of role {role}"
        if name == self._token:
            yield from self._done(self._session.identified(self._caller()))

    def written(self, id: str, *, offset: int) -> Iterator[str]:  # noqa: A002 - the frame's
        """Have the broker acknowledge a record."""
        told = Delivered(partition=0, offset=offset, timestamp_ms=1)
        yield from self._done(self._session.delivered(id, self._topics[id], told))

    def opened(self, sid: str, topic: str) -> Iterator[str]:
        """Have the reader find where the partitions of a subscription begin."""
        place = Place(topic=topic, partition=0)
        self._session.subscriptions.reserve(sid, [place])
        self._waiting[sid] = []
        yield from self._done(self._session.subscriptions.begin(sid, {place: self._end}))

    def arrive(self, sid: str, *values: str, topic: str = "orders") -> Iterator[str]:
        """Have records arrive at the reader; as many are taken as the client's credit allows."""
        for value in values:
            self._waiting[sid].append(
                Record(topic=topic, partition=0, offset=self._end, key=None, value=value.encode())
            )
            self._end += 1
        yield from self._fed(sid)

    def no_token_in_time(self) -> Iterator[str]:
        yield from self._done(self._session.auth_timed_out())

    def drain(self) -> Iterator[str]:
        """Stop the worker: it takes nothing new, and ends when all receipts are sent."""
        yield from self._done(self._session.drain())

    # -- actions ---------------------------------------------------------------------------------

    def _caller(self) -> Caller:
        rights = Rights([Grant(role=self._roles[self._token])])
        return Caller(kind=CallerKind.TOKEN, name=self._token, rights=rights, number=1)

    def _frame(self, **frame: Any) -> Iterator[str]:
        yield from self._done(self._session.text_received(json.dumps(frame)))

    def _fed(self, sid: str) -> Iterator[str]:
        """Take waiting records within the credit."""
        waiting = self._waiting[sid]
        allowance = self._session.subscriptions.allowance(sid)
        most = 0 if allowance is None else max(0, allowance[0])
        taken, self._waiting[sid] = waiting[:most], waiting[most:]
        if taken:
            place = Place(topic=taken[0].topic, partition=0)
            yield from self._done(self._session.subscriptions.read(sid, taken, {place: self._end}))
        if self._waiting[sid]:
            yield f"{counted(len(self._waiting[sid]), 'record')} without credit"
        elif not taken:
            yield "no records yet"

    def _done(self, actions: Iterable[Action]) -> Iterator[str]:
        said = False
        for action in actions:
            said = True
            if isinstance(action, Identify):
                yield f"look up the token {action.token}"
                yield from self._done(self._session.identified(self._caller()))
            elif isinstance(action, Feed):
                yield from self._fed(action.sid)
            else:
                yield self._words(action)
        if not said:
            yield "nothing to say"

    def _words(self, action: Action) -> str:
        match action:
            case Say(text=text):
                return f"say {_shortened(text)}"
            case Send(topic=topic, record=record):
                return f"write {(record.value or b'').decode()} to {topic}"
            case Open(topics=topics):
                return f"read {', '.join(topics)} from the end"
            case LetGo(sid=sid):
                return f"stop reading for {sid}"
            case Close(code=code, reason=reason):
                return f"close with {code}: {reason}"
            case Join() | Commit() | Move() | Drop() | Hold() | Identify() | Feed():
                raise StoryError(f"this story has no words for {action}")


def _shortened(text: str) -> str:
    """Return a frame; of records only offset and value, since a story knows the rest."""
    frame = json.loads(text)
    for record in frame.get("records", ()):
        for name in record.keys() - {"offset", "value"}:
            del record[name]
    return json.dumps(frame, ensure_ascii=False)
