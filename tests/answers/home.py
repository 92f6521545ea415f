"""The home whose answers are recorded: its interfaces, callers, and contents before the first
call.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.release import VERSION
from brokers.supervisor.options import Options
from tests.answers.asking import PATIENCE_S, Answer, Ask, Door
from tests.answers.masking import Masks
from tests.cluster import ROOT, Cluster, start, stop

PASSWORD: Final = "answers to all 7"  # noqa: S105 - of a home that is gone soon
# Groups form, and members leave, without a wait.
PROPERTIES: Final = """\
group.initial.rebalance.delay.ms=0
group.consumer.heartbeat.interval.ms=300
"""
# name: partitions. The table of each section makes the others that it needs.
TOPICS: Final = {"orders": 2, "quiet": 1, "a.group": 1}
GROUP: Final = "billing"
# Unlike the first user, these need not change their passwords first.
MAKE_CALLERS: Final = """
from gateway.access.operations import Role
from gateway.access.token_scopes import Scope, grants_of
from tests.builders import tokens, users
users.user("vera", password={password!r})
users.user("otto", role=Role.VIEWER, password={password!r})
users.user("nora", role=None, password={password!r})
print(tokens.token("all", grants=grants_of(Scope.ADMIN)))
read = grants_of(Scope.READ, "orders")
print(tokens.token("reader", grants=read))
print(tokens.token("revoked"))
tokens.revoke("revoked")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersHome:
    cluster: Cluster
    cluster_id: str
    tokens: Mapping[str, str]
    # Closed with the home.
    doors: list[Door] = field(default_factory=list)

    @property
    def web(self) -> str:
        return self.cluster.console.rstrip("/")

    @property
    def gateway(self) -> str:
        return self.cluster.gateway.rstrip("/")

    @property
    def connect(self) -> str:
        return str(self.cluster.status()["connect"]).rstrip("/")

    def callers(self) -> dict[str, dict[str, str]]:
        """Return the headers of each caller by name."""
        bearers = {name: {"Authorization": f"Bearer {text}"} for name, text in self.tokens.items()}
        return {"nobody": {}, **bearers}

    def door(self, address: str, **callers: Mapping[str, str]) -> Door:
        self.doors.append(Door(address, {**self.callers(), **callers}))
        return self.doors[-1]

    def masks(self) -> Masks:
        addresses = {"gateway": self.gateway, "web": self.web, "connect": self.connect}
        hosts = {f"{name} host": url.partition("//")[2] for name, url in addresses.items()}
        names = {"broker": self.cluster.bootstrap, "cluster": self.cluster_id}
        broker_port = {"broker port": self.cluster.bootstrap.rpartition(":")[2]}
        folder = {"home": str(self.cluster.folder), "release": VERSION}
        return Masks({**addresses, **hosts, **names, **broker_port, **folder, **self.tokens})

    def signed_in(self, name: str) -> dict[str, str]:
        """Return the cookies of a user who has signed in."""
        door = self.door(self.web)
        page = door.ask(Ask(method="GET", path="/login", by="nobody"))
        cookies = cookies_of(page)
        fields = {"username": name, "password": PASSWORD, **csrf_of(cookies)}
        answer = door.ask(form("/login", fields, cookies))
        assert answer.status == 302, answer
        return cookies | cookies_of(answer)


def cookies_of(answer: Answer) -> dict[str, str]:
    pairs = [value.partition(";")[0] for name, value in answer.headers if name == "set-cookie"]
    return dict(pair.split("=", 1) for pair in pairs)


def csrf_of(cookies: Mapping[str, str]) -> dict[str, str]:
    value = next(value for name, value in cookies.items() if "csrftoken" in name)
    return {"csrfmiddlewaretoken": value}


def cookie_header(cookies: Mapping[str, str]) -> dict[str, str]:
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}


def form(path: str, fields: Mapping[str, str], cookies: Mapping[str, str]) -> Ask:
    """Return the request of a form that a page sends."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", **cookie_header(cookies)}
    body = urlencode(list(fields.items())).encode()
    return Ask(method="POST", path=path, body=body, by="nobody", headers=headers)


@contextmanager
def answers_home(folder: Path) -> Iterator[AnswersHome]:
    """Start the home, and stop it at the end of the block."""
    folder.mkdir(mode=0o700)
    (folder / "broker.properties").write_text(PROPERTIES)
    options = Options(home=folder, brokers=1, port=0, web_port=0, rest_port=0, connect_port=0)
    cluster = start(options, {})
    try:
        fill(cluster.bootstrap)
        home = AnswersHome(
            cluster=cluster,
            cluster_id=(folder / "cluster-id").read_text(encoding="ascii").strip(),
            tokens=make_callers(folder),
        )
        yield home
        for door in home.doors:
            door.close()
    finally:
        stop(cluster)


def make_callers(folder: Path) -> dict[str, str]:
    program = MAKE_CALLERS.format(password=PASSWORD)
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", program],
        cwd=ROOT,
        env={**os.environ, "SAMSA_HOME": str(folder)},
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    names = ("admin", "reader", "revoked")
    made = dict(zip(names, done.stdout.split(), strict=True))
    return {**made, "stranger": f"{made['admin'][:-3]}AAA"}


def fill(bootstrap: str) -> None:
    """Make topics, six records, and a group that has read some of them."""
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 2}
    admin = AdminClient(settings)
    made = admin.create_topics([NewTopic(name, count, 1) for name, count in TOPICS.items()])
    for future in made.values():
        future.result(30)
    producer = Producer(settings)
    for number in range(6):
        value = b'{"n": %d}' % number
        key = b"k%d" % number
        producer.produce("orders", value, key, number % 2, headers=[("kind", b"test")])
    producer.flush(30)
    commit(Consumer({**settings, "group.id": GROUP, "enable.auto.commit": False}))


def commit(consumer: Consumer) -> None:
    """Commit an offset, as soon as the coordinator has loaded its topic."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            threading.Event().wait(0.05)
        else:
            break
    consumer.close()
