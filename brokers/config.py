"""Reads the environment, for all of brokers: the settings of a process at its start.

Values only; the modules that use a setting define its meaning. An invalid setting is a
`ConfigError`, whose sentence names the variable, the value and valid values.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

DEFAULT_BIND: Final = "127.0.0.1"
MAX_PORT: Final = 65_535
# Valid to bind to, not to connect to.
EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - the rule is about binding to it

# Kafka's defaults, by its names. SAMSA_DEFAULTS carries other values from a supervisor to its
# brokers; users set them with `--set` or in the home's broker.properties.
CONNECTIONS_MAX_IDLE_MS: Final = "connections.max.idle.ms"
MAX_CONNECTIONS: Final = "max.connections"
MAX_CONNECTIONS_PER_IP: Final = "max.connections.per.ip"
REQUEST_MAX_BYTES: Final = "socket.request.max.bytes"
# Samsa's own: how long one request may take to arrive. A client gives up on a request after 30 s,
# and on delivering a record after 120 s, so requests that arrive more slowly are useless.
FRAME_MAX_MS: Final = "samsa.frame.max.ms"
# Samsa's own: how many bytes of log files a second one search on the inspection port reads. A disk
# delivers ten times as much, and a search must not slow down consumers that read from it.
SEARCH_BYTES_PER_SECOND: Final = "samsa.search.bytes.per.second"
NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {
        CONNECTIONS_MAX_IDLE_MS: 600_000,
        MAX_CONNECTIONS: 2**31 - 1,
        MAX_CONNECTIONS_PER_IP: 2**31 - 1,
        REQUEST_MAX_BYTES: 104_857_600,
        FRAME_MAX_MS: 120_000,
        SEARCH_BYTES_PER_SECOND: 50_000_000,
    }
)


class ConfigError(Exception):
    """An invalid setting of the process; the message is for the operator who started it."""


def environment() -> dict[str, str]:
    """Return a copy of the environment, for starting other processes."""
    return dict(os.environ)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """The settings of one broker process. `defaults` are the given Kafka broker configs."""

    agent_socket: str
    log_dir: str
    wanted_id: int = -1  # of a new log dir, if it is free in the cluster; -1: any
    bind: str = DEFAULT_BIND
    port: int = 0  # 0: any free port
    advertise: str = ""  # the host in clients' metadata; empty: `bind`, or this machine's name
    inspection_port: int = 0
    secret_file: str = ""  # keys to the inspection port; empty: it stays closed
    metrics_secret_file: str = ""  # keys to its metrics only
    reserve_folder: str = ""  # the home, whose reserve may be on the disk of the log dir
    ready_fd: int = -1  # a pipe for a line once the broker serves, and for beats
    defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def advertised_host(self) -> str:
        """The host for clients; never an address that stands for all of this machine's."""
        if self.advertise or self.bind not in EVERYWHERE:
            return self.advertise or self.bind
        return os.uname().nodename

    def number(self, key: str) -> int:
        """Return a numeric broker config of the table above."""
        text = self.defaults.get(key)
        if text is None:
            return NUMBERS[key]
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"{key} is {text!r} in SAMSA_DEFAULTS, not a number") from None


def broker_config(environ: Mapping[str, str] | None = None) -> BrokerConfig:
    """Read a broker's settings from the environment."""
    source = os.environ if environ is None else environ
    return BrokerConfig(
        agent_socket=_required(source, "SAMSA_AGENT_SOCKET", "the path of the agent's socket"),
        log_dir=_required(source, "SAMSA_LOG_DIR", "the folder for this broker's logs"),
        wanted_id=_integer(source, "SAMSA_WANTED_ID", -1),
        bind=source.get("SAMSA_BIND") or DEFAULT_BIND,
        port=_port(source, "SAMSA_PORT"),
        advertise=source.get("SAMSA_ADVERTISE", ""),
        inspection_port=_port(source, "SAMSA_INSPECTION_PORT"),
        secret_file=source.get("SAMSA_SECRET_FILE", ""),
        metrics_secret_file=source.get("SAMSA_METRICS_SECRET_FILE", ""),
        reserve_folder=source.get("SAMSA_RESERVE", ""),
        ready_fd=_integer(source, "SAMSA_READY_FD", -1),
        defaults=broker_defaults(source),
    )


def broker_defaults(environ: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the broker configs in the environment, unchecked."""
    name = "SAMSA_DEFAULTS"
    text = (os.environ if environ is None else environ).get(name, "")
    if not text:
        return {}
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{name} is not JSON: {error}") from None
    if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
        raise ConfigError(f"{name} is {text!r}; it must be a JSON object of strings")
    return values


def _required(source: Mapping[str, str], name: str, meaning: str) -> str:
    value = source.get(name, "")
    if not value:
        raise ConfigError(f"{name} is not set; it names {meaning}")
    return value


def _integer(source: Mapping[str, str], name: str, default: int) -> int:
    text = source.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        raise ConfigError(f"{name} is {text!r}, not a number") from None


def _port(source: Mapping[str, str], name: str) -> int:
    port = _integer(source, name, 0)
    if not 0 <= port <= MAX_PORT:
        raise ConfigError(f"{name} is {port}; a port must be between 0 (any) and {MAX_PORT}")
    return port
