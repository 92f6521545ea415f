"""Who coordinates each of many groups, and how it is assigned: a question for a hundred at a time.

The client library asks for each group by itself, and does not tell which broker has listed one.
What cannot be found out here is left out, for the library to ask.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Broker, Group, GroupState, GroupSummary, GroupType
from gateway.kafka.wire import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    Reader,
    ask,
    compact,
    refused,
    text,
    varint,
)

# A broker lists 100,000 groups at most, whose names have some tens of bytes.
MAX_LIST_BYTES: Final = 32 * 1024 * 1024
# Descriptions have all members with what they are assigned; a piece that is larger is left out.
AT_ONCE: Final = 100
MAX_PIECE_BYTES: Final = 16 * 1024 * 1024
DEAD: Final = "Dead"
VALUE: Final = "consumer groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How groups of a type are asked about."""

    api: int
    version: int
    body: Callable[[Sequence[str]], bytes]
    read: Callable[[Reader], dict[str, str]]


def overview(
    connection: Connection, brokers: Iterable[Broker], wanted: Sequence[GroupSummary]
) -> dict[str, Group]:
    """Return what is found out of groups, without their members, by name."""
    if not wanted:
        return {}
    names = {summary.name: summary for summary in wanted}
    found: dict[str, Group] = {}
    # The deadline is for all of the questions.
    until = connection.deadline()
    for broker in brokers:
        host = f"[{broker.host}]" if ":" in broker.host else broker.host
        there = replace(connection, bootstrap=f"{host}:{broker.port}", until=until)
        try:
            own = [names[name] for name in _listed(there) if name in names]
            assignors = _assignors(there, own)
        except (KafkaFailure, struct.error):
            continue
        for summary in own:
            # One without members is assigned by nothing.
            is_idle = summary.state is GroupState.EMPTY and summary.type is GroupType.CLASSIC
            assignor = "" if is_idle else assignors.get(summary.name)
            if assignor is not None:
                found[summary.name] = Group(
                    name=summary.name,
                    state=summary.state,
                    type=summary.type,
                    assignor=assignor,
                    coordinator=broker.id,
                    members=(),
                )
    return found


def _listed(connection: Connection) -> list[str]:
    """Return the names of the groups that a broker coordinates."""
    answer = ask(connection, LIST_GROUPS, 1, b"", VALUE, max_bytes=MAX_LIST_BYTES)
    answer.number("i")
    if code := answer.number("h"):
        raise refused(code, "", VALUE)
    names = []
    for _ in range(answer.count()):
        names.append(answer.text())
        answer.text()
    return names


def _assignors(connection: Connection, summaries: Sequence[GroupSummary]) -> dict[str, str]:
    """Return what assigns the partitions of groups that a broker coordinates."""
    found: dict[str, str] = {}
    for kind, question in QUESTIONS.items():
        names = [
            summary.name
            for summary in summaries
            if summary.type is kind
            and not (kind is GroupType.CLASSIC and summary.state is GroupState.EMPTY)
        ]
        for start in range(0, len(names), AT_ONCE):
            piece = names[start : start + AT_ONCE]
            try:
                answer = ask(
                    connection,
                    question.api,
                    question.version,
                    question.body(piece),
                    VALUE,
                    max_bytes=MAX_PIECE_BYTES,
                )
                found |= question.read(answer)
            except (KafkaFailure, struct.error):
                # One group that is too large, or a broker that goes: the library asks for these.
                continue
    return found


def _classic_body(names: Sequence[str]) -> bytes:
    return struct.pack(">i", len(names)) + b"".join(map(text, names))


def _classic(answer: Reader) -> dict[str, str]:
    found = {}
    answer.number("i")
    for _ in range(answer.count()):
        code, name, state = answer.number("h"), answer.text(), answer.text()
        answer.text()
        assignor = answer.text()
        for _member in range(answer.count()):
            for _text in range(3):
                answer.text()
            for _data in range(2):
                answer.data()
        if not code and state != DEAD:
            found[name] = assignor
    return found


def _consumer_body(names: Sequence[str]) -> bytes:
    # Fields of newer releases, of which there are none: of the head, and of the question.
    return b"\0" + varint(len(names) + 1) + b"".join(map(compact, names)) + b"\0\0"


def _consumers(answer: Reader) -> dict[str, str]:
    found = {}
    answer.skip_tags()
    answer.number("i")
    for _ in range(answer.compact_count()):
        code = answer.number("h")
        answer.compact_text()
        name = answer.compact_text()
        answer.compact_text()
        answer.skip(8)
        assignor = answer.compact_text()
        for _member in range(answer.compact_count()):
            _skip_member(answer)
        answer.skip(4)
        answer.skip_tags()
        if not code:
            found[name] = assignor
    return found


def _skip_member(answer: Reader) -> None:
    for _ in range(3):
        answer.compact_text()
    answer.skip(4)
    for _ in range(2):
        answer.compact_text()
    for _ in range(answer.compact_count()):
        answer.compact_text()
    answer.compact_text()
    for _assignment in range(2):
        for _topic in range(answer.compact_count()):
            answer.skip(16)
            answer.compact_text()
            answer.skip(4 * answer.compact_count())
            answer.skip_tags()
        answer.skip_tags()
    answer.skip_tags()


QUESTIONS: Final[Mapping[GroupType, Question]] = {
    GroupType.CLASSIC: Question(api=DESCRIBE_GROUPS, version=1, body=_classic_body, read=_classic),
    GroupType.CONSUMER: Question(
        api=CONSUMER_GROUP_DESCRIBE, version=0, body=_consumer_body, read=_consumers
    ),
}
