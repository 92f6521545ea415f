"""Members that follow their heartbeats: one owner at every moment, and in the end all is read."""

from collections.abc import Callable
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from brokers.coordination.groups import modern_leave
from brokers.coordination.groups.modern import ConsumerGroup, GroupState
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.coordination.groups.consumers import GROUP, Desk, cluster
from tests.scale import count

MEMBERS = [f"m{number}" for number in range(6)]
TOPICS = ["apples", "pears", "plums"]
NAMES = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=3, unique=True)


class Client:
    """One member's own view: what it reads, and what it has been told to stop reading."""

    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.reads: dict[bytes, set[int]] = {}
        self.told: dict[bytes, set[int]] | None = None

    def hear(self, response: Any) -> None:
        self.epoch = response.member_epoch
        if response.assignment is not None:
            told = {t.topic_id: set(t.partitions) for t in response.assignment.topic_partitions}
            self.told = told
            # To read more is done at once; to let go is done later.
            for topic, numbers in told.items():
                self.reads.setdefault(topic, set()).update(numbers)

    def let_go(self) -> None:
        if self.told is not None:
            self.reads = {topic: set(numbers) for topic, numbers in self.told.items()}


class Members(RuleBasedStateMachine):
    # By all that were made: after each step, whichever it was, somebody looks at all of it.
    taken: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.sizes = {"apples": 4, "pears": 3}
        self.desk = Desk(cluster(**self.sizes), assignment_interval_ms=500)
        self.clients: dict[str, Client] = {}
        self.made = 0

    @initialize(crowd=st.integers(0, 3))
    def gather(self, crowd: int) -> None:
        for _ in range(crowd):
            self.join(["apples", "pears"], None, None)
            self.wait(600)

    def _call(self, client: Client, **said: Any) -> None:
        joins = client.epoch == 0
        owned = {} if joins else {t: n for t, n in client.reads.items() if n}
        try:
            response = self.desk.beat(
                client.id,
                client.epoch,
                owned=owned,
                instance_id=client.instance_id,
                **said,
            )
        except KafkaError as error:
            if error.code is not ErrorCode.UNRELEASED_INSTANCE_ID:
                raise
            self.clients.pop(client.id, None)
            return
        client.hear(response)

    @rule(
        names=NAMES,
        assignor=st.sampled_from([None, "uniform", "range"]),
        slot=st.sampled_from([None, None, "one", "two"]),
    )
    def join(self, names: list[str], assignor: str | None, slot: str | None) -> None:
        if len(self.clients) >= len(MEMBERS):
            return
        self.made += 1
        client = self.clients[f"m{self.made}"] = Client(f"m{self.made}", slot)
        self._call(
            client,
            subscribed_topic_names=names,
            server_assignor=assignor,
            rebalance_timeout_ms=1_000,
        )

    @rule(turns=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=8))
    def beat(self, turns: list[tuple[int, bool]]) -> None:
        for number, lets_go in turns:
            if self.clients:
                client = self.clients[sorted(self.clients)[number % len(self.clients)]]
                if lets_go:
                    client.let_go()
                self._call(client)
                self.nobody_reads_what_another_reads()

    @rule(data=st.data(), names=NAMES)
    def subscribe(self, data: st.DataObject, names: list[str]) -> None:
        if self.clients:
            client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
            self._call(client, subscribed_topic_names=names)

    @rule(data=st.data(), is_back_soon=st.booleans())
    def leave(self, data: st.DataObject, is_back_soon: bool) -> None:
        if self.clients:
            client = self.clients.pop(data.draw(st.sampled_from(sorted(self.clients))))
            away = -2 if client.instance_id and is_back_soon else -1
            self.desk.beat(client.id, away, instance_id=client.instance_id)

    @rule(data=st.data())
    def fall_silent(self, data: st.DataObject) -> None:
        if self.desk.group is not None and self.desk.group.members:
            silent = data.draw(st.sampled_from(sorted(self.desk.group.members)))
            self.clients.pop(silent, None)
            expired = modern_leave.session_expired(self.desk.group, silent, self.desk.place, 0)
            self.desk.take(expired)

    @rule(topic=st.sampled_from(TOPICS))
    def grow(self, topic: str) -> None:
        if self.sizes.get(topic, 0) < 8:
            self.sizes[topic] = self.sizes.get(topic, 0) + 1
            self.desk.show(cluster(**self.sizes))

    @rule(milliseconds=st.sampled_from([1, 200, 600]))
    def wait(self, milliseconds: int) -> None:
        self.desk.clock.advance(milliseconds)

    @invariant()
    def nobody_reads_what_another_reads(self) -> None:
        Members.taken += 1
        readers: dict[tuple[bytes, int], str] = {}
        for client in self.clients.values():
            for topic, numbers in client.reads.items():
                for number in numbers:
                    other = readers.setdefault((topic, number), client.id)
                    assert other == client.id, f"{topic!r}-{number}: {other} and {client.id}"

    def teardown(self) -> None:
        """Once all is quiet, everybody is where it should be and every partition is read."""
        group = self.desk.group
        if group is None or not self.clients:
            return
        for member_id in set(group.members) - set(self.clients):
            self.desk.take(
                modern_leave.session_expired(self.desk.group, member_id, self.desk.place, 0)
            )
        for _ in range(8):
            self.desk.clock.advance(600)
            for client in self.clients.values():
                client.let_go()
                self._call(client)
                client.let_go()
        group = self.desk.group
        assert isinstance(group, ConsumerGroup)
        assert group.id == GROUP
        assert group.state is GroupState.STABLE
        asked = {name for client in self.clients for name in group.members[client].names}
        read = {
            (topic, number)
            for client in self.clients.values()
            for topic, numbers in client.reads.items()
            for number in numbers
        }
        topics = self.desk.place.image.topics
        wanted = {
            (topics[name].id, number)
            for name in asked
            if name in topics
            for number in range(len(topics[name].partitions))
        }
        assert read == wanted


def test_members_share_what_there_is(report: Callable[[str], None]) -> None:
    times = settings(max_examples=count(60, 150, long=3_500), stateful_step_count=40, deadline=None)
    Members.taken = 0

    run_state_machine_as_test(Members, settings=times)

    report(f"{Members.taken} steps")
    assert Members.taken >= count(1_000, 3_000, long=100_000)
