"""A broker of ours, its topics, and a program that asks by REST with rights of its own.

Fixtures for the folders of views; a `conftest.py` there takes them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import FULL_ADMIN, Rights
from gateway.kafka.connection import Connection
from gateway.rest import worker as workers
from gateway.rest.views import ApiView
from gateway.rest.worker import Place as Where
from gateway.rest.worker import Worker
from tests.fakes.broker_thread import broker_beside
from tests.fakes.group_service import GroupService, MadeUpGroup, MadeUpMember, served

CLUSTER = "the-cluster-of-a-test1"
GROUP = MadeUpGroup(
    members=[
        MadeUpMember(id="m-1", client_id="a", assignment={"orders": [0, 1]}),
        MadeUpMember(id="m-2", assignment={"orders": [2]}),
    ],
    offsets={("orders", 0): 1, ("orders", 2): 0},
)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    service = GroupService()
    service.groups |= {"billing": GROUP, "a/b": MadeUpGroup()}
    folder = tmp_path_factory.mktemp("broker")
    with served(service), broker_beside(folder, topics={"orders": 3, "clicks": 1}) as broker:
        yield Connection(bootstrap=broker.bootstrap)


@dataclass
class Api:
    """Asks; addresses are below the cluster, as they are sent."""

    prefix: str = "/v3"

    def __call__(self, method: str, address: str, body: Any = None, **headers: Any) -> Any:
        at = address if address.startswith("/") else f"/clusters/{CLUSTER}/{address}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        # The test's client would unquote what the gateway's own door leaves quoted.
        path = f"{self.prefix}{at}".replace("%", "%25")
        return Client(raise_request_exception=False).generic(
            method, path, body or b"", "application/json", headers=headers
        )

    def get(self, address: str, **headers: Any) -> Any:
        answer = self("GET", address, **headers)
        assert answer.status_code == 200, answer.content
        return answer.json()


@pytest.fixture
def rights() -> Rights:
    return Rights([FULL_ADMIN])


@pytest.fixture
def api(
    connection: Connection, rights: Rights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Api:
    class Known(BaseAuthentication):
        def authenticate(self, request: Request) -> tuple[Caller, None]:
            return Caller(kind=CallerKind.TOKEN, name="test", rights=rights), None

    (tmp_path / "cluster-id").write_text(CLUSTER)
    worker = Worker(
        Where(name="gateway-1", home=tmp_path, sockets=tmp_path, bootstrap=connection.bootstrap)
    )
    monkeypatch.setattr(workers._Process, "worker", worker)  # noqa: SLF001 - its one name
    monkeypatch.setattr(ApiView, "authentication_classes", (Known,))
    return Api()
