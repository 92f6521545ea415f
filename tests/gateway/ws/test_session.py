"""What frames and events lead to, without a socket."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from gateway.kafka.member import NotAssigned
from gateway.kafka.readers.values import Begin, End, Gap, GapReason, News
from gateway.kafka.values import Delivered, Place, PositionKind, Record
from gateway.rest.codes import ApiError, Code
from gateway.server import FRAME_BYTES
from gateway.ws import frames
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
from gateway.ws.session import RESTARTING, Session
from gateway.ws.subscription import FRAME_BYTES as BATCH_BYTES
from gateway.ws.subscription import FRAME_RECORDS
from gateway.ws.subscriptions import MAX_SUBSCRIPTIONS

PLACE = Place(topic="orders", partition=0)
OTHER = Place(topic="orders", partition=1)


def caller(role: Role = Role.OPERATOR, name: str = "t") -> Caller:
    return Caller(kind=CallerKind.TOKEN, name=name, rights=Rights([Grant(role=role)]), number=1)


def let_in(role: Role = Role.OPERATOR) -> Session:
    session = Session("c")
    session.identified(caller(role))
    return session


def said(actions: list[Action]) -> list[Any]:
    return [json.loads(action.text) for action in actions if isinstance(action, Say)]


def hear(session: Session, **frame: object) -> list[Action]:
    return session.text_received(json.dumps(frame))


def reading(*, records: int = 10, size: int | None = None) -> Session:
    """Return a session that reads two partitions."""
    session = let_in()
    credit = {"records": records} | ({} if size is None else {"bytes": size})
    [opening] = hear(session, type="subscribe", sid="a", topics=["orders"], credit=credit)
    assert isinstance(opening, Open)
    session.subscriptions.reserve("a", [PLACE, OTHER])
    session.subscriptions.begin("a", {PLACE: 0, OTHER: 0})
    return session


def record(offset: int, place: Place = PLACE) -> Record:
    return Record(topic=place.topic, partition=place.partition, offset=offset, key=None, value=b"v")


def test_the_server_takes_frames_of_the_size_that_the_table_names() -> None:
    assert frames.MAX_FRAME == FRAME_BYTES


def test_nothing_is_done_for_a_client_that_has_not_said_who_it_is() -> None:
    session = Session("c")
    error, close = session.text_received('{"type":"ping"}')
    assert said([error])[0]["error_code"] == 40101
    assert close == Close(4401, "authenticate first, by a frame auth")
    assert session.text_received('{"type":"auth","token":"x"}') == []


def test_a_token_is_looked_at_and_its_caller_told() -> None:
    session = Session("c")
    assert session.text_received('{"type":"auth","token":"x"}') == [Identify("x")]
    assert said(session.identified(caller())) == [
        {"type": "ready", "protocol": "samsa.v1", "cluster_id": "c", "caller": "token:t"}
    ]
    assert session.identified(caller()) == []
    assert session.auth_timed_out() == []


def test_a_socket_stays_whose_it_is() -> None:
    assert let_in().identified(caller(name="other"))[-1] == Close(
        4403, "this socket is of token:t: open another one for token:other"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 400),
        ("{", 400),
        ("[" * 100_000, 422),
        ('{"type":"produce","id":"1","topic":"orders","value":' + "[" * 100_000, 400),
        ('{"type":"ping","id":NaN}', 400),
        ('{"type":"shout"}', 422),
        ("{}", 422),
        ("[]", 422),
        ('{"type":"ping","more":1}', 422),
        ('{"type":"ping","id":"' + "x" * 101 + '"}', 422),
        ('{"type":"credit","sid":"a","records":99999999999999999999}', 422),
        ('{"type":"credit","sid":"a","records":-1}', 422),
        ('{"type":"credit","sid":"a","records":1.5}', 422),
        ('{"type":"credit","sid":"a","records":1}', 404),
        ('{"type":"produce","id":"1","topic":"orders","value":1}', 42206),
        ('{"type":"produce","id":"1","topic":"orders","value":"%","format":"binary"}', 42206),
        ('{"type":"produce","id":"1","topic":"orders","value":"\\ud800"}', 400),
        ('{"type":"subscribe","sid":"a","credit":{"records":1}}', 422),
        ('{"type":"subscribe","sid":"a","credit":{"records":1},"topics":[]}', 422),
        ('{"type":"subscribe","sid":"a","credit":{"records":1},"topics":["x"],"from":{}}', 422),
        ('{"type":"subscribe","sid":"a","credit":{"records":1},"topics":["x"],"from":"soon"}', 422),
    ],
)
def test_what_cannot_be_meant_is_told_and_the_socket_goes_on(text: str, code: int) -> None:
    session = let_in()
    [told] = said(session.text_received(text))
    assert (told["type"], told["error_code"]) == ("error", code)
    assert said(session.text_received('{"type":"ping","id":"1"}')) == [{"type": "pong", "id": "1"}]


def test_a_binary_frame_ends_the_socket() -> None:
    assert let_in().bytes_received()[-1] == Close(4415, "frames are text, and this one is binary")


def test_who_may_only_look_neither_reads_nor_writes() -> None:
    session = let_in(Role.VIEWER)
    asked: list[dict[str, object]] = [
        {"type": "produce", "id": "1", "topic": "orders", "value": "v"},
        {"type": "subscribe", "sid": "a", "topics": ["orders"], "credit": {"records": 1}},
    ]
    for frame in asked:
        [told] = said(hear(session, **frame))
        assert told["error_code"] == 40301


def test_a_record_is_sent_and_its_receipt_names_it() -> None:
    session = let_in()
    [send] = hear(session, type="produce", id="7", topic="orders", key="k", value=None)
    assert isinstance(send, Send)
    assert (send.record.key, send.record.value) == (b"k", None)
    assert said(
        session.delivered("7", "orders", Delivered(partition=1, offset=5, timestamp_ms=9))
    ) == [
        {
            "type": "receipt",
            "id": "7",
            "topic": "orders",
            "partition": 1,
            "offset": 5,
            "timestamp": 9,
        }
    ]


def test_a_subscription_says_where_it_begins_in_one_way_only() -> None:
    at = [{"topic": "orders", "partition": 0, "offset": 3}]
    [opening] = hear(
        let_in(), type="subscribe", sid="a", credit={"records": 1}, **{"from": {"offsets": at}}
    )
    assert isinstance(opening, Open)
    assert opening.starts[PLACE].value == 3
    [told] = said(
        hear(
            let_in(),
            type="subscribe",
            sid="a",
            topics=["orders"],
            credit={"records": 1},
            **{"from": {"offsets": at}},
        )
    )
    assert (told["sid"], told["error_code"]) == ("a", 422)
    [opening] = hear(
        let_in(),
        type="subscribe",
        sid="a",
        assign=[{"topic": "orders", "partition": 0}],
        credit={"records": 1},
        **{"from": {"time_ms": 5}},
    )
    assert isinstance(opening, Open)
    assert opening.starts[PLACE].kind is PositionKind.TIME


def test_a_socket_has_so_many_subscriptions_and_partitions() -> None:
    session = let_in()
    for number in range(MAX_SUBSCRIPTIONS + 1):
        told = hear(
            session, type="subscribe", sid=f"{number}", topics=["orders"], credit={"records": 1}
        )
    assert said(told)[0]["error_code"] == 429
    session.subscriptions.reserve(
        "0", [Place(topic="t", partition=n) for n in range(frames.MAX_PLACES)]
    )
    with pytest.raises(ApiError, match="0 more now"):
        session.subscriptions.reserve("1", [PLACE])


def test_records_gaps_and_ends_are_told_in_their_order() -> None:
    session = reading()
    news: list[News] = [
        record(3),
        Gap(place=PLACE, start=4, next=6, reason=GapReason.DELETED),
        record(6),
        record(0, OTHER),
        End(place=OTHER, name="UNKNOWN_TOPIC_ID", message="made again"),
    ]
    told = said(session.subscriptions.read("a", news, {PLACE: 9, OTHER: 1}))
    assert [one["type"] for one in told] == ["batch", "gap", "batch", "batch", "revoked"]
    assert [(one["hw"], one["lag"]) for one in told if one["type"] == "batch"] == [
        (9, 5),
        (9, 2),
        (1, 0),
    ]
    end = End(place=PLACE, name="UNKNOWN_TOPIC_ID", message="made again")
    assert session.subscriptions.read("a", [end], {})[-1] == LetGo("a")


def test_a_partition_is_paused_only_where_it_is_read() -> None:
    session = reading()
    part = {"topic": "orders", "partition": 1}
    assert hear(session, type="pause", sid="a", partitions=[part]) == [Hold("a", [OTHER], True)]
    assert hear(session, type="resume", sid="a") == [Hold("a", None, False)]
    [told] = said(hear(session, type="pause", sid="a", partitions=[{**part, "partition": 2}]))
    assert told["error_code"] == 40402


def test_after_a_seek_nothing_is_taken_until_it_is_done() -> None:
    session = reading()
    [move] = hear(
        session, type="seek", sid="a", offsets=[{"topic": "orders", "partition": 0, "offset": 2}]
    )
    assert isinstance(move, Move)
    assert session.subscriptions.allowance("a") is None
    session.subscriptions.begin("a", {PLACE: 2, OTHER: 0})
    assert session.subscriptions.allowance("a") == (10, BATCH_BYTES)


def test_a_right_that_is_taken_away_ends_what_it_allowed() -> None:
    session = reading()
    let_go, error, revoked = session.identified(caller(Role.VIEWER))
    assert let_go == LetGo("a")
    assert said([error])[0]["error_code"] == 40301
    assert said([revoked])[0]["ended"]
    assert session.subscriptions.allowance("a") is None


def readers_of(*patterns: str) -> Caller:
    """Return a caller who may read the topics of these patterns, and use any group."""
    grants = [Grant(operation=Operation.READ_PAYLOADS, pattern=pattern) for pattern in patterns]
    return replace(caller(), rights=Rights([*grants, Grant(operation=Operation.RESET_GROUPS)]))


def subscribed(session: Session, **frame: object) -> list[Action]:
    return hear(session, type="subscribe", sid="a", credit={"records": 5}, **frame)


def test_a_pattern_is_read_and_goes_on_without_a_partition() -> None:
    session = let_in()
    [opening] = subscribed(session, pattern="ord.*")
    assert isinstance(opening, Open)
    assert opening.pattern is not None
    assert said(session.subscriptions.begin("a", {}))[0]["partitions"] == []
    assert session.subscriptions.reserve_more("a", [PLACE, OTHER]) == 2
    begun: list[News] = [Begin(place=PLACE, offset=0), Begin(place=OTHER, offset=3), record(0)]
    assigned, batch = said(session.subscriptions.read("a", begun, {}))
    assert assigned["partitions"] == [
        {"topic": "orders", "partition": 0, "offset": 0},
        {"topic": "orders", "partition": 1, "offset": 3},
    ]
    assert batch["type"] == "batch"
    ends: list[News] = [End(place=place, name="GONE", message="gone") for place in (PLACE, OTHER)]
    assert [one["ended"] for one in said(session.subscriptions.read("a", ends, {}))] == [
        False,
        False,
    ]
    assert session.subscriptions.allowance("a") is not None


def test_a_pattern_that_cannot_be_meant_is_refused() -> None:
    for frame in (
        {"pattern": "ord("},
        {"pattern": "a", "topics": ["orders"]},
        {"pattern": "a", "assign": [{"topic": "orders", "partition": 0}]},
        {"pattern": "a", "topics": ["orders"], "group": "g"},
        {"pattern": "a", "group": "g", "from": {"time_ms": 1}},
    ):
        assert said(subscribed(let_in(), **frame))[0]["error_code"] == 422


def test_a_pattern_of_who_may_read_nothing_is_refused_and_ends() -> None:
    session = let_in(Role.VIEWER)
    assert said(subscribed(session, pattern=".*"))[0]["error_code"] == 40301
    session = let_in()
    subscribed(session, pattern=".*")
    let_go, *_ = session.identified(caller(Role.VIEWER))
    assert let_go == LetGo("a")


def test_topics_of_a_pattern_that_may_be_read_no_more_are_dropped_alone() -> None:
    session = Session("c")
    session.identified(readers_of("orders", "pay*"))
    pay = Place(topic="payments", partition=0)
    subscribed(session, pattern=".*")
    session.subscriptions.begin("a", {PLACE: 0, pay: 0})
    drop, revoked = session.identified(readers_of("pay*"))
    assert drop == Drop("a", [PLACE])
    [told] = said([revoked])
    assert (told["partitions"], told["reason"], told["ended"]) == (
        [{"topic": "orders", "partition": 0}],
        "not allowed",
        False,
    )
    assert session.subscriptions.allowance("a") is not None


def test_a_right_that_goes_while_a_pattern_is_opened_holds_when_it_is_open() -> None:
    session = Session("c")
    session.identified(readers_of("orders", "pay*"))
    subscribed(session, pattern=".*")
    assert session.identified(readers_of("pay*")) == []
    drop, assigned, _feed = session.subscriptions.begin("a", {PLACE: 0})
    assert drop == Drop("a", [PLACE])
    assert said([assigned])[0]["partitions"] == []


def test_a_groups_member_by_a_pattern_ends_with_the_right_to_what_it_reads() -> None:
    session = Session("c")
    session.identified(readers_of("orders", "pay*"))
    [joining] = subscribed(session, pattern=".*", group="g")
    assert isinstance(joining, Join)
    assert joining.pattern is not None
    session.subscriptions.note_topics("a", ["orders"])
    assert session.identified(readers_of("orders")) == []
    assert session.identified(readers_of("pay*"))[0] == LetGo("a")


def test_what_appears_has_room_beside_all_that_a_socket_reads() -> None:
    session = reading()
    [_] = hear(session, type="subscribe", sid="b", pattern="t", credit={"records": 1})
    many = [Place(topic="t", partition=index) for index in range(frames.MAX_PLACES)]
    assert session.subscriptions.reserve_more("b", many) == frames.MAX_PLACES - 2
    assert session.subscriptions.reserve_more("b", many) == 0
    assert session.subscriptions.reserve_more("gone", many) == 0


def test_a_worker_that_stops_gives_its_last_receipts_first() -> None:
    session = reading()
    hear(session, type="produce", id="1", topic="orders", value="v")
    assert session.drain() == [LetGo("a")]
    assert said(hear(session, type="produce", id="2", topic="orders"))[0]["error_code"] == 503
    *receipt, close = session.delivered("1", "orders", ApiError(Code.KAFKA_RETRY, "away"))
    assert said(receipt)[0]["error_code"] == 50003
    assert close == Close(RESTARTING, "this worker stops: connect again")


def belonging() -> Session:
    """Return a session with a subscription of a group, which has given it one partition."""
    session = let_in()
    [joining] = hear(
        session, type="subscribe", sid="a", group="g", topics=["orders"], credit={"records": 9}
    )
    assert joining == Join("a", "g", ("orders",), is_from_earliest=False)
    session.subscriptions.note_join("a")
    [told] = said(session.subscriptions.assign("a", {PLACE}))
    assert told["partitions"] == [{"topic": "orders", "partition": 0}]
    return session


def test_what_a_group_gives_and_takes_is_told() -> None:
    session = belonging()
    assert session.subscriptions.assign("a", {PLACE}) == []
    revoked, assigned = said(session.subscriptions.assign("a", {OTHER}))
    assert (revoked["type"], revoked["partitions"][0]["partition"]) == ("revoked", 0)
    assert (assigned["type"], assigned["partitions"][0]["partition"]) == ("assigned", 1)
    session.subscriptions.assign("a", ())
    [told] = said(session.subscriptions.read("a", [record(0)], {PLACE: 4}))
    assert (told["hw"], told["lag"]) == (4, 3)
    assert session.subscriptions.allowance("a") == (8, BATCH_BYTES)


def test_only_a_group_commits_and_only_what_it_has_given() -> None:
    session = belonging()
    at = {"topic": "orders", "partition": 0, "offset": 4}
    assert hear(session, type="ack", sid="a", offsets=[at]) == [Commit("a", {PLACE: 4})]
    assert said(session.subscriptions.report_commit("a", {PLACE: 4})) == [
        {"type": "acked", "sid": "a", "offsets": [at]}
    ]
    [told] = said(
        session.subscriptions.report_failed_commit("a", ApiError(Code.KAFKA_RETRY, "away"))
    )
    assert told["error_code"] == 50003
    other = {**at, "partition": 1}
    assert said(hear(session, type="ack", sid="a", offsets=[other]))[0]["error_code"] == 40402
    assert said(hear(reading(), type="ack", sid="a", offsets=[at]))[0]["error_code"] == 40903


def test_a_subscription_of_a_group_is_paused_whole_or_in_its_own_partitions() -> None:
    session = belonging()
    part = {"topic": "orders", "partition": 0}
    assert hear(session, type="pause", sid="a", partitions=[part]) == [Hold("a", [PLACE], True)]
    [told] = said(hear(session, type="pause", sid="a", partitions=[{**part, "partition": 1}]))
    assert told["error_code"] == 40402
    assert session.subscriptions.allowance("a") is not None
    assert hear(session, type="pause", sid="a") == [Feed("a")]
    assert session.subscriptions.allowance("a") is None
    assert hear(session, type="resume", sid="a") == [Hold("a", None, False), Feed("a")]
    assert session.subscriptions.allowance("a") == (9, BATCH_BYTES)
    [told] = said(session.subscriptions.report_failed_hold("a", ApiError(Code.KAFKA_RETRY, "away")))
    assert (told["sid"], told["error_code"]) == ("a", 50003)


def test_a_member_of_a_group_seeks_in_its_own_partitions() -> None:
    session = belonging()
    at = {"topic": "orders", "partition": 0, "offset": 4}
    other = {**at, "partition": 1}
    assert said(hear(session, type="seek", sid="a", offsets=[other]))[0]["error_code"] == 40402
    [move] = hear(session, type="seek", sid="a", offsets=[at])
    assert isinstance(move, Move)
    assert session.subscriptions.allowance("a") is None
    assert said(hear(session, type="seek", sid="a", offsets=[at]))[0]["error_code"] == 40903
    [told] = said(session.subscriptions.report_move("a", {PLACE: 4}))
    assert (told["type"], told["partitions"]) == ("assigned", [at])
    assert session.subscriptions.allowance("a") is not None

    hear(session, type="seek", sid="a", offsets=[at])
    [told] = said(session.subscriptions.report_failed_move("a", NotAssigned("orders-0")))
    assert told["error_code"] == 40402
    assert session.subscriptions.allowance("a") is not None
    hear(session, type="unsubscribe", sid="a")
    assert (
        session.subscriptions.report_move("a", {PLACE: 4})
        == session.subscriptions.report_failed_move("a", NotAssigned(""))
        == []
    )
    assert session.subscriptions.report_failed_hold("a", NotAssigned("")) == []


def test_a_group_needs_a_right_of_its_own_and_topics_to_divide() -> None:
    at = [{"topic": "orders", "partition": 0}]
    for more in ({"assign": at}, {"topics": ["orders"], "from": {"time_ms": 5}}):
        frame = {"type": "subscribe", "sid": "a", "group": "g", "credit": {"records": 1}}
        [told] = said(let_in().text_received(json.dumps(frame | more)))
        assert told["error_code"] == 422
    session = Session("c")
    reads = Grant(role=Role.OPERATOR, kind=Kind.TOPIC, cluster="c", pattern="*")
    session.identified(replace(caller(), rights=Rights([reads])))
    [told] = said(
        hear(session, type="subscribe", sid="a", group="g", topics=["x"], credit={"records": 1})
    )
    assert told["error_code"] == 40301


def test_a_member_whose_client_gives_no_credit_for_long_leaves() -> None:
    session = belonging()
    let_go, told = session.subscriptions.end_unused("a")
    assert let_go == LetGo("a")
    assert said([told])[0]["reason"] == "no credit for too long"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("credit"), st.integers(0, 700), st.integers(0, 3_000)),
            st.tuples(st.just("read"), st.integers(0, 600), st.integers(1, 400)),
        ),
        max_size=30,
    )
)
def test_nobody_gets_more_records_than_were_allowed(steps: list[tuple[str, int, int]]) -> None:
    session = reading(records=5, size=1_000)
    given_records, given_bytes, got, offset = 5, 1_000, 0, 0
    for step, first, second in steps:
        if step == "credit":
            hear(session, type="credit", sid="a", records=first, bytes=second)
            given_records, given_bytes = given_records + first, given_bytes + second
            continue
        allowed = session.subscriptions.allowance("a")
        if allowed is None:
            continue
        records, size = allowed
        assert 0 < records <= min(FRAME_RECORDS, given_records - got)
        assert 0 < size <= BATCH_BYTES
        taken = min(first, records)
        session.subscriptions.read("a", [record(offset + n) for n in range(taken)], {})
        got, offset = got + taken, offset + taken
    assert got <= given_records


def test_the_reason_of_a_close_fits_into_its_frame_in_any_letters() -> None:
    *_, close = Session("c").text_received(
        json.dumps({"type": "auth", "é" * 200: 1}, ensure_ascii=False)
    )

    assert isinstance(close, Close)
    assert 100 < len(close.reason.encode()) <= 123
