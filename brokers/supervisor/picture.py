"""Describes a running home, for run/settings.json and for `status --json`.

Their keys are a contract that scripts depend on; keys are added, never changed.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from brokers.supervisor.components import Kind
from brokers.supervisor.options import Options, endpoint
from brokers.supervisor.watcher import Watcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The addresses of a home, as far as they are known."""

    home: Path
    options: Options
    ports: tuple[int, ...]  # of its brokers, 0 if one has not reported it yet
    web_port: int | None
    rest_port: int | None = None
    connect_port: int | None = None

    @property
    def bootstrap(self) -> str:
        host = self.options.advertised_host
        return ",".join(endpoint(host, port) for port in self.ports if port)

    @property
    def console(self) -> str | None:
        return self._address(self.web_port)

    @property
    def gateway(self) -> str | None:
        """The address for programs that use HTTP."""
        return self._address(self.rest_port)

    @property
    def connect(self) -> str | None:
        """The address for tools of Kafka Connect."""
        return self._address(self.connect_port)

    def _address(self, port: int | None) -> str | None:
        if port is None:
            return None
        scheme = "https" if self.options.has_tls else "http"
        return f"{scheme}://{endpoint(self.options.advertised_door, port)}"

    def settings(self) -> dict[str, Any]:
        """Return the contents of run/settings.json while the home runs."""
        return {
            "bootstrap": self.bootstrap,
            "console": self.console,
            "gateway": self.gateway,
            "connect": self.connect,
            "bind": self.options.bind,
            "advertise": self.options.advertised_host,
            "brokers": self.options.brokers,
            "ports": list(self.ports),
            "web_port": self.web_port,
            "rest_port": self.rest_port,
            "connect_port": self.connect_port,
            "metrics_topic": self.options.metrics_topic or None,
        }


def status(
    reach: Reach,
    watchers: Sequence[Watcher],
    states: Mapping[str, str],
    troubles: Mapping[str, str],
    *,
    own_state: str,
) -> dict[str, Any]:
    """Return the answer to `status`; `states` and complaints are by component name."""
    return {
        "bootstrap": reach.bootstrap,
        "console": reach.console,
        "gateway": reach.gateway,
        "connect": reach.connect,
        "brokers": [
            {
                "id": watcher.broker_id,
                "host": reach.options.advertised_host,
                "port": watcher.port or None,
                "state": states[watcher.component.name],
                "pid": watcher.pid,
            }
            for watcher in watchers
            if watcher.component.kind is Kind.BROKER
        ],
        "components": [
            {"name": "supervisor", "state": own_state, "pid": os.getpid()},
            *(
                component(
                    watcher,
                    states[watcher.component.name],
                    trouble=troubles.get(watcher.component.name, ""),
                )
                for watcher in watchers
            ),
        ],
        "home": str(reach.home),
    }


def component(watcher: Watcher, state: str, *, trouble: str = "") -> dict[str, Any]:
    return {
        "name": watcher.component.name,
        "state": state,
        "pid": watcher.pid,
        "restarts": watcher.restarts.total,
        "reason": "; ".join(filter(None, (trouble or watcher.reason, held(watcher)))),
        "last_lines": watcher.last_lines,
        "last_end": asdict(watcher.last_end) if watcher.last_end is not None else None,
        **_hold(watcher),
    }


def held(watcher: Watcher) -> str:
    """Return who stopped a component or put it on hold, and how to undo it; empty otherwise."""
    if watcher.hold is None:
        return ""
    name = watcher.component.name
    if watcher.is_stopped:
        return f"stopped by {watcher.hold.by}; `./samsa brokers start {name}` starts it"
    return (
        f"on hold by {watcher.hold.by}, so it is not restarted;"
        f" `./samsa brokers release {name}` ends that"
    )


def _hold(watcher: Watcher) -> dict[str, Any]:
    """Return the two kinds of holds, of which a component has one at most."""
    by, at_ms = (watcher.hold.by, watcher.hold.at_ms) if watcher.hold else (None, None)
    nothing = (None, None)
    held_by, held_at_ms = (by, at_ms) if watcher.is_stopped else nothing
    on_hold_by, on_hold_at_ms = (by, at_ms) if watcher.is_on_hold else nothing
    return {
        "held_by": held_by,
        "held_at_ms": held_at_ms,
        "on_hold_by": on_hold_by,
        "on_hold_at_ms": on_hold_at_ms,
    }
