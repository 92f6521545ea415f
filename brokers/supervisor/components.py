"""Lists the processes of a home, one row each, with command, readiness check and limits.

Processes of connectors have separate tables, since they start only when they are needed.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final
from urllib.parse import quote

from brokers.supervisor import broker_settings, leftovers, valkey
from brokers.supervisor.home import AGENT_SOCKET, COLLECTOR_SOCKET, VALKEY_SOCKET, Home
from brokers.supervisor.options import Options

ROOT: Final = Path(__file__).resolve().parents[2]

# glibc would otherwise adapt both values, and never release the memory of large batches.
BROKER_MEMORY: Final[Mapping[str, str]] = {
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
}
# How long a stopping web server waits for responses in progress; less than its deadline below, so
# that it ends without being killed.
WEB_GRACE_SECONDS: Final = 3


class Kind(Enum):
    AGENT = "agent"
    BROKER = "broker"
    WEB = "web"
    COLLECTOR = "collector"
    GATEWAY = "gateway"
    VALKEY = "valkey"
    BEAT = "connect-beat"
    WORKER = "connect-worker"


class Gate(Enum):
    """How a process reports that it serves."""

    LINE = "a line of JSON on the pipe that it inherits"
    HTTP = "GET /health on its own unix socket answers 200"
    PING = "PING on its unix socket answers PONG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a kind of process may take, in seconds."""

    ready: float
    # A late process is restarted only if a restart can help: never one that recovers logs or
    # migrates a database, which would begin again from the start.
    restarts_when_late: bool
    stop: float


# The three stages of a stop, with the time for killing, fit into the 30 s of `down`.
LIMITS: Final[Mapping[Kind, Limits]] = {
    # The first start creates the tables in two seconds; after this time the user should learn
    # that it waits for the database.
    Kind.AGENT: Limits(ready=15, restarts_when_late=False, stop=5),
    # After a crash it recovers the unflushed parts of its logs.
    Kind.BROKER: Limits(ready=30, restarts_when_late=False, stop=15),
    Kind.WEB: Limits(ready=30, restarts_when_late=True, stop=5),
    # Streams end with a closing message within the grace of a web server, too.
    Kind.GATEWAY: Limits(ready=30, restarts_when_late=True, stop=5),
    # It loads some megabytes at most.
    Kind.VALKEY: Limits(ready=15, restarts_when_late=False, stop=5),
    # It plans each second, and a plan takes milliseconds.
    Kind.BEAT: Limits(ready=30, restarts_when_late=True, stop=5),
    # A slice stops once its current poll or put returns.
    Kind.WORKER: Limits(ready=60, restarts_when_late=True, stop=5),
    # It listens before it reads anything; at the end it writes the samples of some seconds.
    Kind.COLLECTOR: Limits(ready=30, restarts_when_late=True, stop=5),
}
# Clients of other processes first; the agent last, because brokers report their end to it. Kinds of
# one stage stop at the same time.
STOP_ORDER: Final = (
    (Kind.WEB, Kind.GATEWAY, Kind.COLLECTOR, Kind.BEAT, Kind.WORKER),
    (Kind.BROKER, Kind.VALKEY),
    (Kind.AGENT,),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One process to keep running."""

    name: str
    kind: Kind
    command: tuple[str, ...]
    environment: Mapping[str, str]
    gate: Gate
    limits: Limits
    host: str = ""
    port: int = 0  # 0: it picks one, and reports it when it is ready
    slot: int = 0  # of a broker, from 1
    # Where it can be queried, besides its port.
    socket: Path | None = None
    inherited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A listening socket of the supervisor, which stays open while its servers restart."""

    descriptor: int
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """The sockets for browsers and programs; None for those that are not served."""

    web: Listener | None = None
    rest: Listener | None = None
    # Another socket of the web server, for tools of Kafka Connect.
    connect: Listener | None = None
    # The program of the server that workers share; None if REDIS_URL names another one, or if
    # there is none: then workers share nothing.
    valkey: Path | None = None
    # REDIS_URL names another one.
    has_foreign_store: bool = False


SPARK_WORKER: Final = "connect-spark"
# Kinds that run only while there are connectors, and whose failure does not fail a start.
CONNECT_KINDS: Final = frozenset({Kind.BEAT, Kind.WORKER})


def shared_by_all(home: Home) -> dict[str, str]:
    return {
        "SAMSA_HOME": str(home.folder),
        "SAMSA_AGENT_SOCKET": str(home.socket_folder() / AGENT_SOCKET),
        **leftovers.mark(home.folder),
    }


def store_url(home: Home) -> dict[str, str]:
    """Return the variable with the URL of the home's own Valkey."""
    return {"REDIS_URL": f"unix://{quote(str(valkey_socket(home)))}"}


def table(options: Options, home: Home, doors: Doors) -> list[Component]:
    """Return all components of a home, except those of connectors."""
    shared = shared_by_all(home)
    given = [broker_settings.parse_setting(setting) for setting in options.settings]
    told = {**shared, **broker_settings.environment(home.folder, given)}
    brokers = [
        broker(options, home, told, slot=slot, port=port)
        for slot, port in enumerate(options.ports(), start=1)
    ]
    rows = [agent(shared), *brokers]
    told_to_doors = shared
    if doors.valkey is not None:
        told_to_doors = {**shared, **store_url(home)}
    if doors.web is not None:
        collecting = {"SAMSA_COLLECTOR_SOCKET": str(home.socket_folder() / COLLECTOR_SOCKET)}
        rows += [
            web(options, home, {**told_to_doors, **collecting}, doors.web, doors.connect),
            collector({**shared, **collecting, **published(options)}),
        ]
    if doors.rest is not None:
        rows += [
            gateway(options, home, told_to_doors, doors.rest, number=number)
            for number in range(1, options.gateway_workers + 1)
        ]
    if doors.valkey is not None:
        rows.append(shared_store(home, shared, doors.valkey))
    return rows


def connect_table(options: Options, home: Home, doors: Doors) -> list[Component]:
    """Return the components that connectors need; none without a server for their messages."""
    if not options.workers or (doors.valkey is None and not doors.has_foreign_store):
        return []
    told = told_to_connect(home, doors)
    names = [f"connect-worker-{number}" for number in range(1, options.workers + 1)]
    return [
        connect(Kind.BEAT, "connect-beat", ("connect_beat",), told),
        *(connect(Kind.WORKER, name, ("connect_worker", name), told) for name in names),
    ]


def spark_table(options: Options, home: Home, doors: Doors) -> list[Component]:
    """Return the worker for Spark connectors: one, since they share its session."""
    if not connect_table(options, home, doors):
        return []
    command = ("connect_worker", SPARK_WORKER, "--pool", "spark")
    return [connect(Kind.WORKER, SPARK_WORKER, command, told_to_connect(home, doors))]


def told_to_connect(home: Home, doors: Doors) -> dict[str, str]:
    # Workers run foreign code, so they get only the variables that they need.
    told = {
        "SAMSA_HOME": str(home.folder),
        # They serve nothing, so they import nothing of the console's pages.
        "SAMSA_DOOR": "connect",
        **leftovers.mark(home.folder),
    }
    if doors.valkey is not None:
        told |= store_url(home)
    return told


def connect(kind: Kind, name: str, command: tuple[str, ...], told: Mapping[str, str]) -> Component:
    return Component(
        name=name,
        kind=kind,
        command=(sys.executable, "manage.py", *command),
        environment=told,
        gate=Gate.LINE,
        limits=LIMITS[kind],
    )


def environment_of(component: Component, *, port: int, inspection_port: int) -> dict[str, str]:
    """Return the environment of one start; a broker also gets the ports that it had before."""
    if component.kind is not Kind.BROKER:
        return dict(component.environment)
    ports = {"SAMSA_PORT": str(port), "SAMSA_INSPECTION_PORT": str(inspection_port)}
    return {**component.environment, **ports}


def agent(shared: Mapping[str, str]) -> Component:
    return Component(
        name="agent",
        kind=Kind.AGENT,
        command=(sys.executable, "manage.py", "agent"),
        environment=shared,
        gate=Gate.LINE,
        limits=LIMITS[Kind.AGENT],
    )


def broker(
    options: Options, home: Home, shared: Mapping[str, str], *, slot: int, port: int
) -> Component:
    own = {
        "SAMSA_LOG_DIR": str(home.log_dir(slot)),
        "SAMSA_RESERVE": str(home.folder),
        # So that ids do not follow the order in which brokers happen to come first.
        "SAMSA_WANTED_ID": str(slot),
        "SAMSA_BIND": options.bind,
        "SAMSA_ADVERTISE": options.advertised_host,
        # Where the agent writes the keys of the cluster; no environment contains a key.
        "SAMSA_SECRET_FILE": str(home.secret_file),
        "SAMSA_METRICS_SECRET_FILE": str(home.metrics_secret_file),
    }
    return Component(
        name=f"broker-{slot}",
        kind=Kind.BROKER,
        command=(sys.executable, "-m", "brokers.server"),
        environment={**shared, **BROKER_MEMORY, **own},
        gate=Gate.LINE,
        limits=LIMITS[Kind.BROKER],
        host=options.bind,
        port=port,
        slot=slot,
    )


def collector(shared: Mapping[str, str]) -> Component:
    """Return the row of the process that watches brokers for the pages of the web server."""
    return Component(
        name="collector",
        kind=Kind.COLLECTOR,
        command=(sys.executable, "manage.py", "collector"),
        environment=shared,
        gate=Gate.LINE,
        limits=LIMITS[Kind.COLLECTOR],
        socket=Path(shared["SAMSA_COLLECTOR_SOCKET"]),
    )


def published(options: Options) -> dict[str, str]:
    """Return the variable with the topic of the collector's samples, if one was requested."""
    return {"SAMSA_METRICS_TOPIC": options.metrics_topic} if options.metrics_topic else {}


def valkey_socket(home: Home) -> Path:
    return home.socket_folder() / VALKEY_SOCKET


def shared_store(home: Home, shared: Mapping[str, str], program: Path) -> Component:
    """Return the row of the server that the workers of the gateway share."""
    socket = valkey_socket(home)
    return Component(
        name="valkey",
        kind=Kind.VALKEY,
        command=valkey.command(program, socket=socket, folder=home.valkey_folder()),
        environment=shared,
        gate=Gate.PING,
        limits=LIMITS[Kind.VALKEY],
        socket=socket,
    )


def web(
    options: Options,
    home: Home,
    shared: Mapping[str, str],
    door: Listener,
    connect: Listener | None = None,
) -> Component:
    made = served(options, home, shared, door, kind=Kind.WEB, name="web", which="web")
    if connect is None:
        return made
    return replace(
        made,
        command=(*made.command, "--connect-fd", str(connect.descriptor)),
        inherited=(*made.inherited, connect.descriptor),
    )


def gateway(
    options: Options, home: Home, shared: Mapping[str, str], door: Listener, *, number: int
) -> Component:
    """Return the row of one of the processes that share the gateway's socket."""
    name = f"gateway-{number}"
    return served(options, home, shared, door, kind=Kind.GATEWAY, name=name, which="rest")


def served(
    options: Options,
    home: Home,
    shared: Mapping[str, str],
    door: Listener,
    *,
    kind: Kind,
    name: str,
    which: str,
) -> Component:
    own = home.worker_socket(name)
    command = (
        *(sys.executable, "-m", "gateway"),
        *("--fd", str(door.descriptor), "--grace", str(WEB_GRACE_SECONDS)),
        *("--door", which, "--worker", name, "--socket", str(own)),
        *(["--insecure"] * options.is_insecure),
    )
    secure = {}
    if options.has_tls:
        command += ("--cert", str(options.web_cert), "--key", str(options.web_key))
        # Cookies are then sent over https only.
        secure = {"SAMSA_HTTPS": "true"}
    return Component(
        name=name,
        kind=kind,
        command=command,
        # Host names that browsers and programs may use.
        environment={
            **shared,
            **secure,
            "SAMSA_BIND": options.door_host,
            "SAMSA_ADVERTISE": options.advertised_door,
        },
        gate=Gate.HTTP,
        limits=LIMITS[kind],
        host=options.door_host,
        port=door.port,
        socket=own,
        inherited=(door.descriptor,),
    )
