"""Consumers at three workers behind a balancer: each call goes to the next one."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic
from tests.cluster import ROOT, Cluster, running_cluster
from tests.fakes.balancer import Address, Balancer, balancing
from tests.fakes.worker_process import WorkerProcess, worker_beside
from tests.scale import count

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOWTO: Final = ROOT / "docs/howto/read-as-a-group-over-http.md"
BLOCK: Final = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAM: Final = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROUNDS: Final = count(2, 10, long=100)
WAIT_S: Final = 60
# Members that have died are noticed soon.
PROPERTIES: Final = """\
group.consumer.heartbeat.interval.ms=300
group.consumer.session.timeout.ms=2000
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("consumers") / "home"
    folder.mkdir(mode=0o700)
    (folder / "broker.properties").write_text(PROPERTIES)
    with running_cluster(folder, gateway_workers=1) as cluster:
        topics = [NewTopic(name="orders", partitions=2)]
        Admin(Connection(bootstrap=cluster.bootstrap)).create(topics)
        produce(cluster, range(10))
        yield cluster


@pytest.fixture(scope="module")
def beside(
    home: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sequence[WorkerProcess]]:
    logs = tmp_path_factory.mktemp("workers")
    with ExitStack() as stack:
        yield [
            stack.enter_context(worker_beside(home, name, log=logs / f"{name}.log"))
            for name in ("gateway-2", "gateway-3")
        ]


@pytest.fixture(scope="module")
def balancer(home: Cluster, beside: Sequence[WorkerProcess]) -> Iterator[Balancer]:
    first = urlsplit(home.gateway)
    assert first.hostname is not None
    assert first.port is not None
    servers = [(first.hostname, first.port), *(worker.address for worker in beside)]
    with balancing(servers) as found:
        yield found


@pytest.fixture(scope="module")
def token(home: Cluster) -> str:
    return tokens(
        home, "create", "--read=*", "--write=json*", "--create=json*", "--group=*", "--", "tests"
    )


def tokens(home: Cluster, *arguments: str) -> str:
    """Make or revoke a token, as its command does; return what that says."""
    done = subprocess.run(
        [sys.executable, "manage.py", "tokens", *arguments],
        cwd=ROOT,
        env={**os.environ, "SAMSA_HOME": str(home.folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_S,
    )
    return done.stdout.strip()


class Client:
    """A program that opens a connection for each call, which the next worker takes."""

    def __init__(self, address: Address, token: str) -> None:
        self._address = "{}:{}".format(*address)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/vnd.kafka.v2+json",
        }

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        with closing(http.client.HTTPConnection(self._address, timeout=WAIT_S)) as connection:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, self._headers)
            answer = connection.getresponse()
            told = answer.read()
            return answer.status, json.loads(told) if told else None

    def subscribed(self, group: str, **draft: str) -> str:
        draft = {"format": "json", "auto.offset.reset": "earliest", **draft}
        status, told = self.ask("POST", f"/consumers/{group}", draft)
        assert status == 200, told
        path = urlsplit(told["base_uri"]).path
        status, refused = self.ask("POST", f"{path}/subscription", {"topics": ["orders"]})
        assert status == 204, refused
        return path

    def fetched(self, path: str, wanted: range, *, is_late: bool = False) -> list[int]:
        """Fetch until these are there; the first fetch is not empty, unless they came late."""
        found: list[int] = []
        end = time.monotonic() + WAIT_S
        while not set(wanted) <= set(found) and time.monotonic() < end:
            status, told = self.ask("GET", f"{path}/records")
            assert status == 200, told
            assert told or found or is_late, "the first fetch is empty"
            found += [each["value"]["n"] for each in told]
        return sorted(found)


@pytest.fixture(scope="module")
def client(balancer: Balancer, token: str) -> Client:
    return Client(balancer.address, token)


def produce(home: Cluster, numbers: range) -> None:
    producer = TopicWriter(Connection(bootstrap=home.bootstrap), "orders")
    for number in numbers:
        producer.send(NewRecord(value=b'{"n":%d}' % number, partition=number % 2))
    producer.flush()


def test_every_line_of_the_guide_works(balancer: Balancer, token: str) -> None:
    gateway = "http://{}:{}".format(*balancer.address)
    first, *blocks = BLOCK.findall(HOWTO.read_text())
    assert len(blocks) == 4
    told = ""
    for block in blocks:
        found = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", first + block],
            env={"PATH": os.environ["PATH"], "GATEWAY": gateway, "TOKEN": token},
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S,
        )
        assert found.returncode == 0, f"{block}\n{found.stdout}\n{found.stderr}"
        told += found.stdout

    assert '"instance_id":"my_consumer_instance"' in told
    assert '"value":{"foo":"bar"}' in told


def test_every_line_of_the_guide_to_writing_works(home: Cluster) -> None:
    text = (ROOT / "docs/howto/write-over-http.md").read_text()
    first, *blocks = BLOCK.findall(text)
    programs = PROGRAM.findall(text)
    environment = {
        "PATH": os.environ["PATH"],
        "GATEWAY": home.gateway,
        "TOKEN": tokens(home, "create", "--write=guide", "--create=guide", "--", "writer"),
    }
    # The topic of the guide is that of other tests.
    scripts = [["bash", "-euo", "pipefail", "-c", first + "".join(blocks)]]
    whole = f"{programs[1]}\nassert write_all({cluster_id(home)!r}, 'guide', range(10_000)) == []"
    scripts += [[sys.executable, "-c", program] for program in (programs[0], whole)]

    for script in scripts:
        script[-1] = script[-1].replace("orders", "guide")
        found = subprocess.run(
            script, env=environment, capture_output=True, text=True, check=False, timeout=WAIT_S
        )
        assert found.returncode == 0, f"{script[-1]}\n{found.stdout}\n{found.stderr}"
        assert "error_code" not in found.stdout.replace('"error_code":null', "").replace(
            '"error_code":200', ""
        )

    assert (len(blocks), len(programs)) == (4, 2)


def cluster_id(home: Cluster) -> str:
    return (home.folder / "cluster-id").read_text().strip()


def test_consumers_are_used_by_whichever_worker_takes_the_call(
    client: Client, balancer: Balancer, report: Callable[[str], None]
) -> None:
    before = sum(balancer.served.values())
    for number in range(ROUNDS):
        for draft in ({}, {"name": "chosen"}):
            path = client.subscribed(f"round-{number}-{len(draft)}", **draft)

            # Another test writes what comes after them.
            assert client.fetched(path, range(10))[:10] == list(range(10))
            assert client.ask("POST", f"{path}/offsets") == (200, None)
            assert client.ask("DELETE", path)[0] == 204

    calls = sum(balancer.served.values()) - before
    report(f"{2 * ROUNDS} transcripts, {calls} calls, by worker {[*balancer.served.values()]}")
    assert max(balancer.served.values()) - min(balancer.served.values()) <= 1


def test_a_consumer_with_a_chosen_name_outlives_what_workers_share(
    home: Cluster, client: Client
) -> None:
    path = client.subscribed("unshared", name="kept")
    client.fetched(path, range(10), is_late=True)
    home.kill("valkey")

    # Each worker, whether or not the server is back by then.
    again = [client.ask("GET", f"{path}/records?timeout=1")[0] for _ in range(3)]
    clash, _ = client.ask("POST", "/consumers/unshared", {"name": "kept"})
    committed = client.ask("POST", f"{path}/offsets")
    deleted = client.ask("DELETE", path)[0]

    assert again == [200, 200, 200]
    assert clash == 409
    assert committed == (200, None)
    assert deleted == 204


def test_a_fetch_that_waits_ends_when_its_token_is_revoked(
    home: Cluster, balancer: Balancer
) -> None:
    text = tokens(home, "create", "--read=*", "--group=*", "--", "short")
    client = Client(balancer.address, text)
    latest = {"auto.offset.reset": "latest", "consumer.request.timeout.ms": "30000"}
    path = client.subscribed("revoked", **latest)

    with ThreadPoolExecutor(1) as beside:
        fetching = beside.submit(client.ask, "GET", f"{path}/records")
        tokens(home, "revoke", "short")
        # Otherwise it is told after its 30 s that there is nothing.
        status, told = fetching.result(WAIT_S)

    assert (status, told["error_code"]) == (401, 40101)


@pytest.mark.parametrize("name", ["", "chosen"])
def test_a_killed_worker_is_told_of_and_its_group_goes_on(
    home: Cluster, client: Client, token: str, tmp_path: Path, name: str
) -> None:
    group = f"killed-{name}"
    names = {"name": name} if name else {}
    with worker_beside(home, "gateway-9", log=tmp_path / "log") as owner:
        path = Client(owner.address, token).subscribed(group, **names)
        # Passed on by the others until its owner ends in the middle.
        client.fetched(path, range(10), is_late=True)
        owner.kill()

    told = [client.ask("GET", f"{path}/records") for _ in range(3)]
    again = client.subscribed(group, **names)
    produce(home, range(100, 110))

    assert [(status, each["error_code"]) for status, each in told] == [(404, 40403)] * 3
    # The member has seen the ends before these were written.
    assert set(range(100, 110)) <= set(client.fetched(again, range(100, 110), is_late=True))
