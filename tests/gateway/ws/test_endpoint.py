"""Sockets over uvicorn, with the client library that programs use, out of a real broker."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from gateway.access.grants import Rights
from gateway.access.token_scopes import Scope, grants_of
from gateway.health import Message
from gateway.server import FRAME_BYTES, STRANGERS_FRAME_BYTES
from gateway.ws import connection as sockets
from gateway.ws import endpoint, group_reader
from gateway.ws.consumers import Endpoint
from tests.fakes.broker_thread import BesideBroker, broker_beside
from tests.gateway.ws.site import BAD, GOOD, Client, Site, run, write

pytestmark = pytest.mark.slow

# Less than the time limit for authentication.
WAIT_S = 8.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BesideBroker]:
    topics = {"orders": 2, "written": 1, "quiet": 1, "long": 1}
    with broker_beside(tmp_path_factory.mktemp("broker"), topics=topics) as broker:
        for partition in range(2):
            write(broker, "orders", [b"%d" % n for n in range(20)], partition)
        write(broker, "long", [b"x" * 10_000] * 300)
        yield broker


def test_a_token_is_shown_in_the_first_frame(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with connect(site.address) as connection:
            client = Client(connection)
            await client.say(**GOOD)
            assert (await client.hear("ready"))["caller"] == "token:t"
        async with connect(site.address) as connection:
            client = Client(connection)
            await client.say(**BAD)
            assert (await client.hear("error"))["error_code"] == 40101
            assert await client.end() == (4401, "this token is unknown")

    run(broker, work)


def test_a_handshake_with_a_wrong_token_or_another_protocol_is_refused(
    broker: BesideBroker,
) -> None:
    async def work(site: Site) -> None:
        with pytest.raises(InvalidStatus) as refused:
            await connect(site.address, additional_headers={"Authorization": "Bearer bad"})
        assert refused.value.response.status_code == 401
        with pytest.raises(InvalidStatus) as refused:
            await connect(site.address, subprotocols=[Subprotocol("mqtt")])
        assert refused.value.response.status_code == 400
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{site.address}?token=good")
        assert refused.value.response.status_code == 400
        assert b"takes no query" in refused.value.response.body

    run(broker, work)


def test_a_socket_that_does_not_say_whose_it_is_ends(
    broker: BesideBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "AUTH_S", 0.05)

    async def work(site: Site) -> None:
        async with connect(site.address) as connection:
            assert (await Client(connection).end())[0] == 4408

    run(broker, work)


def test_frames_are_small_until_it_is_known_whose_the_socket_is(broker: BesideBroker) -> None:
    large = {"type": "produce", "id": "1", "topic": "nowhere", "value": "v" * 100_000}

    async def work(site: Site) -> None:
        async with connect(site.address) as connection:
            await connection.send("x" * (STRANGERS_FRAME_BYTES + 1))
            assert (await Client(connection).end())[0] == 1009
        async with connect(site.address) as connection:
            client = Client(connection)
            await client.say(**GOOD)
            await client.hear("ready")
            await client.say(**large)
            assert (await client.hear("error"))["error_code"] == 40401
        async with site.client() as client:
            await client.say(**large)
            assert (await client.hear("error"))["error_code"] == 40401

    run(broker, work)


def test_a_caller_has_so_many_sockets_and_gets_them_back(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client(), site.client():
            async with connect(site.address) as connection:
                client = Client(connection)
                await client.say(**GOOD)
                assert (await client.end())[0] == 4429
            assert site.traffic.rows()["token:t"]["open"] == 2
        async with site.client():
            pass

    run(broker, work)


def test_records_are_written_and_each_has_a_receipt(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client() as client:
            for number in range(50):
                await client.say(
                    type="produce", id=f"{number}", topic="written", value=f"{number}", partition=0
                )
            receipts = [await client.hear("receipt") for _ in range(50)]
            assert [one["id"] for one in receipts] == [f"{number}" for number in range(50)]
            assert [one["offset"] for one in receipts] == list(range(50))
            await client.say(type="produce", id="x", topic="nowhere", value="v")
            told = await client.hear("error")
            assert (told["id"], told["error_code"]) == ("x", 40401)
            await client.say(type="produce", id="y", topic="written", value="v", partition=9)
            assert (await client.hear("error"))["error_code"] == 40402

    run(broker, work)


def test_the_first_record_creates_its_topic_for_a_caller_with_the_right(
    broker: BesideBroker,
) -> None:
    async def work(site: Site) -> None:
        async with site.client() as client:
            await client.say(type="produce", id="a", topic="created", value="v")
            told = await client.hear("receipt")
            assert (told["topic"], told["offset"]) == ("created", 0)
            site.callers.change(Rights(grants_of(Scope.WRITE)))
            await client.say(type="produce", id="x", topic="nowhere", value="v")
            told = await client.hear("error")
            assert (told["id"], told["error_code"]) == ("x", 40401)
            assert "./samsa tokens create NAME --create nowhere" in told["message"]

    run(broker, work, creates_topics=True)


def test_a_writer_above_its_limit_is_told_and_waits(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client() as client:
            site.limits.waits = [0.02]
            await client.say(type="produce", id="1", topic="written", value="v")
            assert await client.hear("throttle") == {"type": "throttle", "ms": 20, "id": "1"}
            assert (await client.hear("receipt"))["id"] == "1"

    run(broker, work)


def test_records_come_as_far_as_the_credit_goes(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client() as client:
            await client.say(
                type="subscribe",
                sid="a",
                assign=[{"topic": "orders", "partition": 0}],
                credit={"records": 5},
                **{"from": "earliest"},
            )
            assert (await client.hear("assigned"))["partitions"] == [
                {"topic": "orders", "partition": 0, "offset": 0}
            ]
            first = await client.records(5)
            await client.say(type="ping", id="between")
            await client.hear("pong")
            await client.say(type="credit", sid="a", records=100)
            rest = await client.records(15)
            assert [one["offset"] for one in first + rest] == list(range(20))
            assert rest[-1]["value"] == "19"

    run(broker, work)


def test_a_subscription_is_moved_paused_and_ended(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client() as client:
            await client.say(
                type="subscribe", sid="a", topics=["orders"], credit={"records": 1_000}
            )
            assert [one["offset"] for one in (await client.hear("assigned"))["partitions"]] == [
                20,
                20,
            ]
            await client.say(
                type="pause", sid="a", partitions=[{"topic": "orders", "partition": 1}]
            )
            await client.say(
                type="seek",
                sid="a",
                offsets=[
                    {"topic": "orders", "partition": 0, "offset": 18},
                    {"topic": "orders", "partition": 1, "offset": 19},
                ],
            )
            await client.hear("assigned")
            assert [one["offset"] for one in await client.records(2)] == [18, 19]
            await client.say(type="resume", sid="a")
            assert (await client.records(1))[0]["partition"] == 1
            await client.say(type="unsubscribe", sid="a")
            assert (await client.hear("revoked"))["reason"] == "unsubscribed"
            await client.say(type="subscribe", sid="a", topics=["nowhere"], credit={"records": 1})
            assert (await client.hear("error"))["error_code"] == 40401

    run(broker, work)


def test_a_group_goes_on_where_it_was_acked(broker: BesideBroker) -> None:
    async def subscribe(client: Client, records: int) -> list[Any]:
        await client.say(
            type="subscribe",
            sid="a",
            group="workers",
            topics=["orders"],
            credit={"records": records},
            **{"from": "earliest"},
        )
        assert len((await client.hear("assigned"))["partitions"]) == 2
        return await client.records(records)

    async def work(site: Site) -> None:
        async with site.client() as client:
            found = await subscribe(client, 40)
            assert len({(one["partition"], one["offset"]) for one in found}) == 40
            at = [{"topic": "orders", "partition": n, "offset": 20 - n} for n in range(2)]
            await client.say(type="ack", sid="a", offsets=at)
            assert (await client.hear("acked"))["offsets"] == at
            await client.say(type="unsubscribe", sid="a")
            await client.hear("revoked")
        async with site.client() as client:
            [again] = await subscribe(client, 1)
            assert (again["partition"], again["offset"]) == (1, 19)

    run(broker, work)


def test_members_beyond_the_limit_and_groups_of_no_topic_are_refused(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client() as client:
            one = {"type": "subscribe", "group": "g", "credit": {"records": 1}}
            await client.say(**one, sid="a", topics=["nowhere"])
            assert (await client.hear("error"))["error_code"] == 40401
            assert (await client.hear("revoked"))["ended"]
            for sid in "abc":
                await client.say(**one, sid=sid, topics=["quiet"])
            told = await client.hear("error")
            assert (told["sid"], told["error_code"]) == ("c", 429)

    run(broker, work)


def test_a_member_without_credit_stays_for_a_while_and_is_let_go(
    broker: BesideBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_reader, "LOOK_S", 0.05)
    monkeypatch.setattr(group_reader, "NO_CREDIT_S", 2.0)

    async def work(site: Site) -> None:
        async with site.client() as client:
            await client.say(
                type="subscribe", sid="a", group="idle", topics=["orders"], credit={"records": 0}
            )
            assert len((await client.hear("assigned"))["partitions"]) == 2
            told = await client.hear("revoked")
            assert (len(told["partitions"]), told["reason"]) == (2, "no credit for too long")

    run(broker, work)


def test_a_client_that_does_not_read_stops_what_is_read_for_it(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client(max_queue=1) as slow, site.client() as quick:
            for client in (slow, quick):
                await client.say(
                    type="subscribe",
                    sid="a",
                    topics=["long"],
                    credit={"records": 1_000},
                    **{"from": "earliest"},
                )
                await client.hear("assigned")
            assert len(await quick.records(300)) == 300
            assert [one["offset"] for one in await slow.records(300)] == list(range(300))

    run(broker, work)


def test_hostile_frames_end_only_their_own_socket(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client() as other:
            async with site.client() as client:
                await client.connection.send(b"\x00")
                assert (await client.end())[0] == 4415
            async with site.client() as client:
                await client.connection.send("x" * (FRAME_BYTES + 1))
                assert (await client.end())[0] == 1009
            async with site.client() as client:
                await client.connection.send(b"\xff\xfe", text=True)
                assert (await client.end())[0] == 1007
            async with site.client() as client:
                await client.connection.send(" " * FRAME_BYTES)
                assert (await client.hear("error"))["error_code"] == 400
            await other.say(type="ping")
            await other.hear("pong")

    run(broker, work)


def test_a_token_that_is_revoked_ends_its_socket(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client() as client:
            site.callers.revoked.set()
            assert await client.end() == (4401, "the token was revoked")

    run(broker, work)


def test_a_worker_that_stops_lets_its_sockets_have_their_last_words(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with site.client() as client:
            await client.say(type="produce", id="1", topic="written", value="last")
            await client.say(type="ping")
            await client.hear("pong")
            site.sockets.drain()
            await client.hear("receipt")
            assert (await client.end())[0] == 1012
            await site.sockets.said()
        with pytest.raises(InvalidStatus) as refused:
            await connect(site.address)
        assert refused.value.response.status_code == 503

    run(broker, work)


def test_a_socket_that_is_accepted_while_its_worker_stops_is_told(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        sent: list[Message] = []
        connects = [{"type": "websocket.connect"}]

        async def receive() -> Message:
            if not connects:
                # The client says nothing.
                await asyncio.Event().wait()
            return connects.pop()

        async def send(message: Message) -> None:
            if message["type"] == "websocket.accept":
                site.sockets.drain()
            sent.append(message)

        scope = {"type": "websocket", "path": "/ws/v1", "headers": []}
        async with asyncio.timeout(WAIT_S):
            await Endpoint(lambda: site.sockets)(scope, receive, send)
        assert [message.get("code") for message in sent] == [None, 1012]

    run(broker, work)


def test_an_address_keeps_no_other_one_out_before_it_says_whose_it_is(
    broker: BesideBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "MAX_UNKNOWN_EACH", 1)

    async def work(site: Site) -> None:
        async with connect(site.address) as first:
            with pytest.raises(InvalidStatus) as refused:
                await connect(site.address)
            assert (
                b"1 sockets of 127.0.0.1 have not authenticated yet" in refused.value.response.body
            )
            other = {"X-Forwarded-For": "192.0.2.9"}
            async with connect(site.address, additional_headers=other):
                client = Client(first)
                await client.say(**GOOD)
                await client.hear("ready")
                async with connect(site.address):
                    pass

    run(broker, work)
