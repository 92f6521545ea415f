"""Describes many groups for a list, with one request per hundred groups.

The client library asks for each group separately, does not report the broker of a listed group, and
does not know some states, or members with another protocol than their group's. Groups that fail
here are left out, and the library is asked for them.
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

# A broker lists 100,000 groups at most, with names of some tens of bytes.
MAX_LIST_BYTES: Final = 32 * 1024 * 1024
# A description has all members with their assignments; a larger answer is left out.
AT_ONCE: Final = 100
MAX_PIECE_BYTES: Final = 16 * 1024 * 1024
DEAD: Final = "Dead"
STATES: Final[Mapping[str, GroupState]] = {state.value: state for state in GroupState}
# The type of a member of the classic protocol.
CLASSIC_MEMBER: Final = 0
VALUE: Final = "consumer groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The request that describes groups of a type."""

    api: int
    version: int
    body: Callable[[Sequence[str]], bytes]
    read: Callable[[Reader], dict[str, "Told"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A broker's description of a group; for an unknown state, the library's is used."""

    assignor: str
    state: GroupState | None = None
    is_mixed: bool = False


# A group without members has no assignor, so no broker is asked.
IDLE: Final = Told(assignor="")


def refined(connection: Connection, broker: Broker, group: Group) -> Group:
    """Return a group of the consumer protocol with the details that the library omits."""
    try:
        there = at(connection, broker)
        told = _asked(there, QUESTIONS[GroupType.CONSUMER], [group.name]).get(group.name)
    except (KafkaFailure, struct.error):
        return group
    if told is None:
        return group
    return replace(group, state=told.state or group.state, is_mixed=told.is_mixed)


def at(connection: Connection, broker: Broker) -> Connection:
    """Return a connection to one broker of a cluster."""
    host = f"[{broker.host}]" if ":" in broker.host else broker.host
    return replace(connection, bootstrap=f"{host}:{broker.port}")


def overview(
    connection: Connection, brokers: Iterable[Broker], wanted: Sequence[GroupSummary]
) -> dict[str, Group]:
    """Return the groups that could be described, without their members, by name."""
    if not wanted:
        return {}
    names = {summary.name: summary for summary in wanted}
    found: dict[str, Group] = {}
    # All requests share one deadline.
    until = connection.deadline()
    for broker in brokers:
        there = replace(at(connection, broker), until=until)
        try:
            own = [names[name] for name in _listed(there) if name in names]
            told = _told(there, own)
        except (KafkaFailure, struct.error):
            continue
        for summary in own:
            said = IDLE if is_idle(summary) else told.get(summary.name)
            if said is not None:
                found[summary.name] = Group(
                    name=summary.name,
                    state=said.state or summary.state,
                    type=summary.type,
                    assignor=said.assignor,
                    coordinator=broker.id,
                    members=(),
                    is_mixed=said.is_mixed,
                )
    return found


def is_idle(summary: GroupSummary) -> bool:
    return summary.state is GroupState.EMPTY and summary.type is GroupType.CLASSIC


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


def _told(connection: Connection, summaries: Sequence[GroupSummary]) -> dict[str, Told]:
    """Return a broker's descriptions of groups that it coordinates."""
    found: dict[str, Told] = {}
    for kind, question in QUESTIONS.items():
        names = [one.name for one in summaries if one.type is kind and not is_idle(one)]
        for start in range(0, len(names), AT_ONCE):
            try:
                found |= _asked(connection, question, names[start : start + AT_ONCE])
            except (KafkaFailure, struct.error):
                # A group is too large, or the broker stops: the library asks for these groups.
                continue
    return found


def _asked(connection: Connection, question: Question, names: Sequence[str]) -> dict[str, Told]:
    body = question.body(names)
    answer = ask(connection, question.api, question.version, body, VALUE, max_bytes=MAX_PIECE_BYTES)
    return question.read(answer)


def _classic_body(names: Sequence[str]) -> bytes:
    return struct.pack(">i", len(names)) + b"".join(map(text, names))


def _classic(answer: Reader) -> dict[str, Told]:
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
            found[name] = Told(assignor=assignor, state=STATES.get(state))
    return found


def _consumer_body(names: Sequence[str]) -> bytes:
    # No tagged fields, either in the header or in the request.
    return b"\0" + varint(len(names) + 1) + b"".join(map(compact, names)) + b"\0\0"


def _consumers(answer: Reader) -> dict[str, Told]:
    found = {}
    answer.skip_tags()
    answer.number("i")
    for _ in range(answer.compact_count()):
        code = answer.number("h")
        answer.compact_text()
        name, state = answer.compact_text(), answer.compact_text()
        answer.skip(8)
        assignor = answer.compact_text()
        kinds = {_kind_of_member(answer) for _ in range(answer.compact_count())}
        answer.skip(4)
        answer.skip_tags()
        if not code:
            found[name] = Told(
                assignor=assignor, state=STATES.get(state), is_mixed=CLASSIC_MEMBER in kinds
            )
    return found


def _kind_of_member(answer: Reader) -> int:
    """Skip a member; return the protocol that it uses."""
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
    kind = answer.number("b")
    answer.skip_tags()
    return kind


QUESTIONS: Final[Mapping[GroupType, Question]] = {
    GroupType.CLASSIC: Question(api=DESCRIBE_GROUPS, version=1, body=_classic_body, read=_classic),
    GroupType.CONSUMER: Question(
        api=CONSUMER_GROUP_DESCRIBE, version=1, body=_consumer_body, read=_consumers
    ),
}
