"""The ORM store keeps the contract of metadata stores, in the agent's process and over its link."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from brokers.clock import SystemClock
from brokers.cluster.plans import Plan
from brokers.cluster.proposals import Action
from brokers.cluster.store import MetadataStore
from brokers.server.agent_link import AgentLink
from tests.brokers.controlplane.host import NOW_MS, Host, new_cluster, running_host
from tests.contracts.metadata_store import CASES, Case, case_name, check

from brokers.controlplane import services  # isort: skip
from brokers.controlplane.agent.server import AgentServer  # isort: skip
from brokers.controlplane.history import History  # isort: skip
from brokers.controlplane.membership import Attachment  # isort: skip

pytestmark = pytest.mark.slow


class OrmKeeper:
    """Brokers are attached in this process."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.cluster_id = host.store.cluster_id

    def attach(self) -> MetadataStore:
        return Attachment(self.host.membership)

    async def end(self, store: MetadataStore) -> None:
        assert isinstance(store, Attachment)
        store.close(is_dead=True)

    async def forget(self) -> None:
        self.host.store._known = History(  # noqa: SLF001
            self.host.store.image, (), kept=1_000, kept_bytes=10**6
        )

    async def preview(self, actions: Sequence[Action]) -> Plan:
        made: list[Plan] = []
        await self.host.run_elsewhere(
            lambda: made.append(
                services.preview(cluster_id=self.cluster_id, actions=actions, now_ms=NOW_MS)
            )
        )
        return made[0]


class LinkKeeper(OrmKeeper):
    """Brokers come over the agent's socket."""

    def __init__(self, host: Host, path: Path) -> None:
        super().__init__(host)
        self._path = path
        self._links: list[AgentLink] = []

    def attach(self) -> MetadataStore:
        link = AgentLink(str(self._path), clock=SystemClock())
        self._links.append(link)
        return link

    async def end(self, store: MetadataStore) -> None:
        assert isinstance(store, AgentLink)
        registered = store._registered  # noqa: SLF001 - what a process table would tell
        assert registered is not None
        await store.close()
        session = self.host.membership.session_of(registered.broker_id)
        assert session is not None
        self.host.membership.end(session, "process ended")

    async def close(self) -> None:
        for link in self._links:
            await link.close()


@asynccontextmanager
async def opened_store(cluster_id: str) -> AsyncIterator[OrmKeeper]:
    async with running_host(cluster_id) as host:
        yield OrmKeeper(host)


@asynccontextmanager
async def opened_agent(cluster_id: str, path: Path) -> AsyncIterator[OrmKeeper]:
    async with running_host(cluster_id) as host:
        server = AgentServer(host.membership, path=path)
        await server.start()
        keeper = LinkKeeper(host, path)
        try:
            yield keeper
        finally:
            await keeper.close()
            await server.close()


@pytest.fixture(autouse=True)
def nobody_waits_for_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of the contract apply changes when asked to, which a call must not wait for."""
    monkeypatch.setattr("brokers.controlplane.membership.APPLIED_WITHIN_S", 0.01)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_the_orm_store_keeps_the_contract(case: Case, database: str) -> None:
    check(case, partial(opened_store, new_cluster()))


@pytest.mark.parametrize("case", CASES, ids=case_name)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_agent_keeps_the_contract_over_its_link(
    case: Case, database: str, tmp_path: Path
) -> None:
    check(case, partial(opened_agent, new_cluster(), tmp_path / "agent.sock"))
