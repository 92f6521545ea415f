"""Serves the worker part of Kafka Connect's REST: version, health, and loggers.

Levels are those of the process that answers, and last until it ends. Only loggers of Samsa have
levels here: those of libraries write queries, headers and frames, in which tokens are.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from django.db import Error
from rest_framework.request import Request
from rest_framework.response import Response

from connectors import selectors
from connectors.refusals import NotFound, Unfit
from connectors.rest import shapes
from connectors.rest.views import ConnectView

# Kafka Connect's name of the logger above all: here, above all of Samsa.
ROOT: Final = "root"
OURS: Final = ("brokers", "connectors", "console", "gateway")
# Its lines are the record of who did what.
AUDIT: Final = "gateway.access.audit"
TRACE: Final = 5
LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "OFF": logging.CRITICAL + 10,
        "FATAL": logging.CRITICAL,
        "ERROR": logging.ERROR,
        "WARN": logging.WARNING,
        "INFO": logging.INFO,
        "DEBUG": logging.DEBUG,
        "TRACE": TRACE,
    }
)
# The time of the last change, by logger, in milliseconds. Its size is bounded, since modules create
# loggers, not calls.
_changed_at_ms: dict[str, int] = {}


class RootView(ConnectView):
    def get(self, _request: Request) -> Response:
        """Return the version of the interface, and the cluster's id."""
        return Response(
            {
                "version": shapes.VERSION,
                "commit": shapes.COMMIT,
                "kafka_cluster_id": self.cluster_id,
            }
        )


class HealthView(ConnectView):
    def get(self, _request: Request) -> Response:
        """Return whether configs can be read and written."""
        try:
            selectors.names(self.cluster_id)
        except Error as error:
            said = f"The database of connectors does not answer: {type(error).__name__}"
            return Response({"status": "unhealthy", "message": said}, status=503)
        said = "Worker has completed startup and is ready to handle requests."
        return Response({"status": "healthy", "message": said})


class LoggersView(ConnectView):
    def get(self, _request: Request) -> Response:
        return Response({name: _shown(name, logger) for name, logger in sorted(_loggers())})


class LoggerView(ConnectView):
    def get(self, _request: Request, logger: str) -> Response:
        return Response(_shown(logger, _logger(logger)))

    def put(self, request: Request, logger: str) -> Response:
        """Set the level of a logger and of those below it, in this process."""
        if request.query_params.get("scope", "worker").lower() == "cluster":
            raise Unfit("scope=cluster is not served: a level is of one process, leave scope out")
        given = self.sent().get("level")
        if given is None:
            raise Unfit("Desired 'level' parameter was not specified in request.")
        level = LEVELS.get(str(given).upper())
        if level is None:
            raise NotFound(f"invalid log level '{str(given)[:100]}'.")
        _logger(logger)
        below = f"{logger}."
        names = [name for name, _ in _loggers() if logger in (ROOT, name) or name.startswith(below)]
        for name in set(names) - {ROOT}:
            _logger(name).setLevel(level)
        for name in names:
            _changed_at_ms[name] = int(1000 * time.time())
        return Response(sorted(names))


def _loggers() -> Iterator[tuple[str, logging.Logger]]:
    above = {name: logging.getLogger(name) for name in OURS}
    yield ROOT, above["connectors"]
    yield from above.items()
    for name, found in list(logging.root.manager.loggerDict.items()):
        is_ours = name.startswith(tuple(f"{one}." for one in OURS)) and name != AUDIT
        if isinstance(found, logging.Logger) and is_ours:
            yield name, found


def _logger(name: str) -> logging.Logger:
    for known, found in _loggers():
        if known == name:
            return found
    raise NotFound(f"Logger {name} not found.")


def _shown(name: str, logger: logging.Logger) -> dict[str, Any]:
    effective = logger.getEffectiveLevel()
    level = next((word for word, number in LEVELS.items() if number <= effective), "TRACE")
    return {"level": level, "last_modified": _changed_at_ms.get(name)}
