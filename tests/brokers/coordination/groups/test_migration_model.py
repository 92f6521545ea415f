"""Members of both protocols in one group that changes under them, as they see it.

One owner at every moment, no offset lost, and what the records say is what the shard has; in the
end all is quiet and every partition is read.
"""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.shard import SetTimer
from tests.brokers.coordination.groups.mixed_clients import (
    GROUP,
    ClassicClient,
    Client,
    ConsumerClient,
)
from tests.builders.mixed_groups import cluster, desk_of
from tests.scale import count

MOST = 5
TOPICS = ["apples", "pears"]
NAMES = st.sampled_from([["apples"], ["apples", "pears"], ["pears"]])
KINDS = st.sampled_from(["classic", "consumer"])
SLOTS = st.sampled_from([None, None, "one", "two"])


class Mixed(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.sizes = {"apples": 4, "pears": 2}
        self.desk = desk_of(cluster(**self.sizes), assignment_interval_ms=500)
        self.clients: dict[str, Client] = {}
        self.committed: dict[tuple[str, int], int] = {}
        self.made = 0
        self.is_cooperative = False

    @initialize(is_cooperative=st.booleans(), crowd=st.integers(0, 3), kind=KINDS)
    def gather(self, is_cooperative: bool, crowd: int, kind: str) -> None:
        self.is_cooperative = is_cooperative
        for _ in range(crowd):
            self.come(kind, ["apples", "pears"], None)
        for _ in range(6):
            self.live(300)

    def _step(self, client: Client) -> None:
        client.step()
        if client.is_gone:
            self.clients.pop(client.name, None)
        self.nobody_reads_what_another_reads()

    @rule(kind=KINDS, names=NAMES, slot=SLOTS)
    def come(self, kind: str, names: list[str], slot: str | None) -> None:
        if len(self.clients) >= MOST or any(c.instance == slot for c in self._static()):
            return
        self._make(kind, names, slot)

    def _static(self) -> list[Client]:
        return [client for client in self.clients.values() if client.instance is not None]

    def _make(self, kind: str, names: list[str], slot: str | None) -> None:
        self.made += 1
        name = f"m{self.made}"
        if kind == "consumer":
            client: Client = ConsumerClient(self.desk, name, names, slot)
        else:
            client = ClassicClient(self.desk, name, names, slot, is_cooperative=self.is_cooperative)
        self.clients[name] = client
        self._step(client)

    @rule(turns=st.lists(st.integers(0, MOST), min_size=1, max_size=12))
    def work(self, turns: list[int]) -> None:
        for number in turns:
            if self.clients:
                names = sorted(self.clients)
                self._step(self.clients[names[number % len(names)]])

    @rule(milliseconds=st.sampled_from([1, 300, 600, 2_000]))
    def live(self, milliseconds: int) -> None:
        """Time passes, and everybody is heard of: nobody is put out who lives."""
        self.desk.pass_time(milliseconds)
        for name in sorted(self.clients):
            if name in self.clients:
                self._step(self.clients[name])

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), offset=st.integers(1, 99))
    def commit(self, data: st.DataObject, offset: int) -> None:
        client = self.clients[data.draw(st.sampled_from(sorted(self.clients)))]
        if client.reads:
            place = data.draw(st.sampled_from(sorted(client.reads)))
            if client.commit(place, offset):
                self.committed[place] = offset

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), dies=st.booleans())
    def go(self, data: st.DataObject, dies: bool) -> None:
        client = self.clients.pop(data.draw(st.sampled_from(sorted(self.clients))))
        if not dies:
            assert isinstance(client, ConsumerClient | ClassicClient)
            client.leave()

    @precondition(lambda self: self._static())
    @rule(data=st.data(), kind=KINDS, names=NAMES)
    def replace(self, data: st.DataObject, kind: str, names: list[str]) -> None:
        """A static member ends, and comes back with a protocol and a subscription of its choice."""
        client = data.draw(st.sampled_from(self._static()))
        del self.clients[client.name]
        if isinstance(client, ConsumerClient) and kind == "consumer":
            client.leave(for_a_while=True)
        self._make(kind, names, client.instance)

    @rule(topic=st.sampled_from(TOPICS))
    def grow(self, topic: str) -> None:
        if self.sizes[topic] < 6:
            self.sizes[topic] += 1
            self.desk.change(cluster(**self.sizes))

    @rule()
    def replay(self) -> None:
        self.desk.check()

    @rule()
    def move(self) -> None:
        """Another broker takes over: what no record holds is lost, and who waits is told."""
        for reply in self.desk.shard.unloaded():
            self.desk.parked.discard(reply.ticket)
            self.desk.answers[reply.ticket] = reply.answer
        self.desk.shard = self.desk.loaded()
        self.desk.timers.clear()
        for outcome in self.desk.started():
            assert all(isinstance(timer, SetTimer) for timer in outcome.timers)
            self.desk.take(outcome)

    @invariant()
    def nobody_reads_what_another_reads(self) -> None:
        readers: dict[tuple[str, int], str] = {}
        for client in self.clients.values():
            for place in client.reads:
                other = readers.setdefault(place, client.name)
                assert other == client.name, f"{place}: {other} and {client.name}"

    @invariant()
    def no_offset_is_lost(self) -> None:
        kept = self.desk.shard.offsets.of(GROUP)
        assert {place: known.offset for place, known in kept.items()} == self.committed

    def teardown(self) -> None:
        """Once all is quiet, everything is read, and the group is of its members' protocol.

        One more comes first: where the last static member came back with the classic protocol
        nobody knows that it leads, and nobody would notice that topics grew.
        """
        if not self.clients:
            return
        kind = next(iter(self.clients.values())).kind
        for _ in range(160):
            self.live(500)
        self._make(kind, ["apples"], None)
        for _ in range(20):
            self.live(500)
        self.desk.check()
        group = self.desk.shard.group(GROUP)
        kinds = {client.kind for client in self.clients.values()}
        if kinds == {"classic"}:
            assert isinstance(group, ClassicGroup)
        elif "consumer" in kinds:
            assert isinstance(group, ConsumerGroup)
        topics = {name for client in self.clients.values() for name in client.names}
        read = {place for client in self.clients.values() for place in client.reads}
        assert read == {(name, n) for name in topics for n in range(self.sizes[name])}


TestMixed = pytest.mark.slow(Mixed.TestCase)
TestMixed.settings = settings(
    max_examples=count(60, 120, long=3_000),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
