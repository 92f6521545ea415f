"""Defines the options of a home, and refuses invalid ones before anything starts.

Values only: nothing here touches the disk or the network.
"""

import argparse
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from brokers.cluster.topic_names import (
    INTERNAL_TOPICS,
    MAX_NAME_LENGTH,
    PROHIBITED_TOPIC,
    is_topic_name,
)
from brokers.config import environment
from brokers.supervisor.broker_settings import parse_setting
from brokers.supervisor.errors import StartRefused

DEFAULT_BROKERS: Final = 3
DEFAULT_PORT: Final = 9092
DEFAULT_WEB_PORT: Final = 8000
DEFAULT_REST_PORT: Final = 8082
DEFAULT_CONNECT_PORT: Final = 8083
DEFAULT_BIND: Final = "127.0.0.1"
# A broker takes one core and 45 MB; far more than this on one host is a typing error.
MAX_BROKERS: Final = 100
# A worker takes one core and 75 MB; so many fill a host and leave nothing to brokers.
MAX_GATEWAY_WORKERS: Final = 32
PROXIES: Final = "SAMSA_TRUSTED_PROXIES"
# Likewise; each runs one task of a connector at a time, and has two processes.
MAX_WORKERS: Final = 32
MAX_PORT: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `up` and `node`."""

    home: Path
    brokers: int = DEFAULT_BROKERS
    port: int = DEFAULT_PORT  # of the first broker; the others follow; 0: any free ones
    web_port: int | None = DEFAULT_WEB_PORT  # None: no web server, as a node has none
    rest_port: int | None = None  # None: no gateway
    connect_port: int | None = None  # of the web server too, for tools of Kafka Connect
    # If a port was not given and is taken, the next free one is used.
    can_web_port_move: bool = False
    can_rest_port_move: bool = False
    can_connect_port_move: bool = False
    gateway_workers: int = 1
    # For tasks of connectors, once there is a connector; 0: none here.
    workers: int = 1
    bind: str = DEFAULT_BIND
    web_bind: str = ""  # of console and gateway; empty: the bind address
    advertise: str = ""  # advertised to clients; empty: the bind address
    is_insecure: bool = False
    is_detached: bool = False
    # Files of PEM, with which console and gateway serve TLS.
    web_cert: Path | None = None
    web_key: Path | None = None
    settings: tuple[str, ...] = ()  # of all brokers, as "key=value"
    metrics_topic: str = ""  # for the collector's samples; empty: none

    @property
    def has_tls(self) -> bool:
        return self.web_cert is not None

    @property
    def advertised_host(self) -> str:
        return self.advertise or self.bind

    @property
    def door_host(self) -> str:
        """The address where console and gateway listen."""
        return self.web_bind or self.bind

    @property
    def advertised_door(self) -> str:
        """The name or address that browsers and programs use."""
        return self.advertise or (self.bind if is_wildcard(self.door_host) else self.door_host)

    def ports(self) -> list[int]:
        """The port of each broker, 0 where it may choose."""
        return [self.port + slot if self.port else 0 for slot in range(self.brokers)]

    def arguments(self) -> list[str]:
        """Return the options as arguments of `python -m brokers.supervisor`."""
        flags = [
            *(["--insecure"] * self.is_insecure),
            *(["--detached"] * self.is_detached),
            *(["--web-port-may-move"] * self.can_web_port_move),
            *(["--rest-port-may-move"] * self.can_rest_port_move),
            *(["--connect-port-may-move"] * self.can_connect_port_move),
        ]
        return [
            *("--home", str(self.home), "--brokers", str(self.brokers)),
            *("--port", str(self.port), "--web-port", port_text(self.web_port)),
            *("--rest-port", port_text(self.rest_port)),
            *("--connect-port", port_text(self.connect_port)),
            *("--gateway-workers", str(self.gateway_workers), "--workers", str(self.workers)),
            *("--bind", self.bind, "--web-bind", self.web_bind, "--advertise", self.advertise),
            *flags,
            *(f"--web-cert={self.web_cert}" for _ in range(self.web_cert is not None)),
            *(f"--web-key={self.web_key}" for _ in range(self.web_key is not None)),
            *(f"--set={setting}" for setting in self.settings),
            f"--metrics-topic={self.metrics_topic}",
        ]


def parse(arguments: Sequence[str]) -> Options:
    """Read what `Options.arguments` wrote."""
    parser = argparse.ArgumentParser(
        prog="python -m brokers.supervisor",
        description="Start, watch and stop the processes of one home. `./samsa up` calls this.",
    )
    parser.add_argument("--home", required=True, type=Path)
    parser.add_argument("--brokers", type=int, default=DEFAULT_BROKERS)
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument(
        "--web-port", type=port_of, default=DEFAULT_WEB_PORT, help="a number, or none"
    )
    parser.add_argument("--rest-port", type=port_of, default=None, help="a number, or none")
    parser.add_argument("--connect-port", type=port_of, default=None, help="a number, or none")
    for door in ("web", "rest", "connect"):
        parser.add_argument(
            f"--{door}-port-may-move", action="store_true", help="to the next free one"
        )
    for file in ("cert", "key"):
        parser.add_argument(f"--web-{file}", type=Path)
    parser.add_argument("--gateway-workers", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--bind", default=DEFAULT_BIND)
    parser.add_argument("--web-bind", default="")
    parser.add_argument("--advertise", default="")
    parser.add_argument("--insecure", action="store_true")
    parser.add_argument(
        "--detached",
        action="store_true",
        help="report the start as lines of JSON, then write to the home's log only",
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--metrics-topic", default="")
    given = parser.parse_args(arguments)
    return Options(
        home=Path(os.path.abspath(given.home)),  # noqa: PTH100 (resolve() would follow links)
        brokers=given.brokers,
        port=given.port,
        web_port=given.web_port,
        rest_port=given.rest_port,
        connect_port=given.connect_port,
        can_web_port_move=given.web_port_may_move,
        can_rest_port_move=given.rest_port_may_move,
        can_connect_port_move=given.connect_port_may_move,
        gateway_workers=given.gateway_workers,
        workers=given.workers,
        bind=given.bind,
        web_bind=given.web_bind,
        advertise=given.advertise,
        is_insecure=given.insecure,
        is_detached=given.detached,
        web_cert=given.web_cert,
        web_key=given.web_key,
        settings=tuple(given.set),
        metrics_topic=given.metrics_topic,
    )


def port_text(port: int | None) -> str:
    return "none" if port is None else str(port)


def port_of(text: str) -> int | None:
    return None if text == "none" else int(text)


def check(options: Options) -> None:
    """Refuse options that cannot work or would not be safe."""
    for setting in options.settings:
        parse_setting(setting)
    if not 1 <= options.brokers <= MAX_BROKERS:
        raise StartRefused(
            f"--brokers is {options.brokers}; it must be between 1 and {MAX_BROKERS}"
        )
    last = max(options.ports())
    if options.port < 0 or last > MAX_PORT:
        raise StartRefused(
            f"--port {options.port} gives {options.brokers} brokers the ports up to {last}; ports "
            f"must be between 1 and {MAX_PORT}, and 0 picks free ones"
        )
    doors = {
        "--web-port": (options.web_port, options.can_web_port_move),
        "--rest-port": (options.rest_port, options.can_rest_port_move),
        "--connect-port": (options.connect_port, options.can_connect_port_move),
    }
    taken: dict[int, str] = {}
    for name, (port, can_move) in doors.items():
        check_door(name, port, options, can_move=can_move)
        if port and (other := taken.setdefault(port, name)) != name:
            raise StartRefused(f"{other} and {name} are both {port}; give one of them another")
    check_metrics_topic(options.metrics_topic)
    if not 1 <= options.gateway_workers <= MAX_GATEWAY_WORKERS:
        raise StartRefused(
            f"--gateway-workers is {options.gateway_workers}; it must be between 1 and "
            f"{MAX_GATEWAY_WORKERS}"
        )
    if not 0 <= options.workers <= MAX_WORKERS:
        raise StartRefused(
            f"--workers is {options.workers}; it must be between 0 and {MAX_WORKERS}"
        )
    if (options.web_cert is None) != (options.web_key is None):
        raise StartRefused("--web-cert and --web-key go together: give both files, or neither")
    if is_wildcard(options.advertised_host):
        raise StartRefused(
            f"clients cannot connect to {options.advertised_host}:"
            f" say with --advertise HOST under which name or address they reach this machine"
        )
    if options.web_bind and not is_loopback(options.web_bind):
        check_web_bind(options)
    if not is_loopback(options.bind) and not options.is_insecure:
        raise StartRefused(
            f"--bind {options.bind} would open brokers without passwords to the network: leave it "
            "out, open console and gateway alone by --web-bind, or add --insecure if that "
            "network is trusted"
        )


def check_metrics_topic(name: str) -> None:
    """Refuse an invalid topic name, and the internal topics of brokers."""
    if not name:
        return
    if not is_topic_name(name):
        raise StartRefused(
            f"--metrics-topic is {name[:100]!r}; the name of a topic has 1 to {MAX_NAME_LENGTH}"
            " letters, digits, '.', '_' and '-', such as samsa-metrics"
        )
    if name in INTERNAL_TOPICS or name == PROHIBITED_TOPIC:
        raise StartRefused(
            f"--metrics-topic is {name}, an internal topic of brokers; give another name, such as "
            "samsa-metrics"
        )


def check_web_bind(options: Options) -> None:
    """Refuse to serve console and gateway beyond this machine in clear text, as they would do."""
    if not (options.has_tls or options.is_insecure or has_proxy()):
        raise StartRefused(
            f"--web-bind {options.web_bind} would send passwords and tokens over the network in"
            f" clear text: add --web-cert and --web-key, name the proxy that encrypts in"
            f" {PROXIES}, or add --insecure if that network is trusted"
        )


def check_door(option: str, port: int | None, options: Options, *, can_move: bool) -> None:
    """Refuse a port of console or gateway that is invalid, or is a broker's."""
    if not port:
        return
    if not 0 < port <= MAX_PORT:
        raise StartRefused(
            f"{option} is {port}; a port must be between 1 and {MAX_PORT}, or 0 for any"
        )
    if port in options.ports() and not can_move:
        raise StartRefused(
            f"{option} {port} is also the port of broker-{options.ports().index(port) + 1};"
            f" give another {option} or --port"
        )


def has_proxy() -> bool:
    """Tell whether there is a proxy before console and gateway, by the variable that they read."""
    return bool(environment().get(PROXIES, "").strip())


def is_wildcard(host: str) -> bool:
    address = as_address(host)
    return address is not None and address.is_unspecified


def is_loopback(host: str) -> bool:
    address = as_address(host)
    return host == "localhost" if address is None else address.is_loopback


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def endpoint(host: str, port: int) -> str:
    """`host:port` as clients write it, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
