"""The ASGI application of a web server or a gateway: health, bare calls, and Django behind them.

`settings.DOOR` selects one of the two before anything is loaded.
"""

import asyncio
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, Protocol, runtime_checkable

from channels.routing import ProtocolTypeRouter
from django.apps import apps
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured
from django.urls import get_resolver

from gateway import home, log_lines
from gateway.connect_port import ConnectPort
from gateway.dispatch import Dispatch, is_of_program
from gateway.forwarding import Forwarded
from gateway.handshakes import Handshakes
from gateway.health import Application, Door
from gateway.host_names import Request
from gateway.rest import root, worker
from gateway.rest.origins import Origins
from gateway.rest.route import PREFIXES
from gateway.rest.worker import Place, Worker
from gateway.shared.link import BadAddress, address_of
from gateway.ws import description, endpoint, routing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

# WhiteNoise sends static files as ordinary iterators, which Django collects first. They are a few
# kilobytes each, so that is harmless, and no reason for a warning at every start.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")


def without_traceback(record: logging.LogRecord) -> bool:
    """Log the message of a record without its thirty lines of traceback."""
    record.exc_info = None
    return True


# Any client can cause this error, as often as it likes.
logging.getLogger("django.security.DisallowedHost").addFilter(without_traceback)


def show_audit_log() -> None:
    """Write events of `gateway.access.audit` to the log of this process."""
    audit = logging.getLogger("gateway.access.audit")
    handler = logging.StreamHandler()
    # Without a level, so that the supervisor shows them.
    handler.setFormatter(log_lines.Lines("%(asctime)s %(name)s %(message)s"))
    audit.addHandler(handler)
    audit.setLevel(logging.INFO)
    audit.propagate = False


@runtime_checkable
class HasStreams(Protocol):
    """The configuration of a Django app that declares streams; the web server serves them."""

    def streams(self) -> Mapping[str, Application]:
        """Return the streams by their path. Called once, when Django is ready."""
        ...

    def drain_streams(self) -> None:
        """End all streams; do not wait."""
        ...


class Program:
    """The application of this process, and the worker behind it."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self.application: Final = ConnectPort(
            Door(load=self._load, missing=home.missing, trouble=home.agent_trouble)
        )

    def serve_connect(self, port: int) -> None:
        """Serve Kafka Connect's REST to clients of a port."""
        self.application.port = port

    def begin(self) -> None:
        """Start background work; a worker that is loaded later starts its own."""
        if self._worker is not None:
            self._worker.begin()

    def drain(self) -> None:
        """End all streams; there are none before Django is ready."""
        if self._worker is None:
            return
        self._worker.drain()
        if settings.DOOR == "web":
            for app in apps_with_streams():
                app.drain_streams()

    async def said(self) -> None:
        """Wait for the final messages of sockets."""
        if self._worker is not None:
            await self._worker.said()

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()

    def _load(self) -> Application:
        """Read the settings and initialize Django."""
        django = get_asgi_application()
        django.request_class = Request
        show_audit_log()
        # Django reads the URLs at the first request: an error there must end the start.
        assert get_resolver().url_patterns, "there is something to serve"
        self._worker = Worker(place())
        is_web = settings.DOOR == "web"
        # The table has views, which Django has to be ready for.
        from gateway.rest import mounts, table  # noqa: PLC0415

        calls = mounts.mounts(self._worker, table.door(), sockets=[endpoint.PATH])
        # For views, which are created without it.
        worker.take(self._worker)
        prefixes = PREFIXES[table.door()]
        bare = {description.PATH: description.application}
        if is_web:
            for app in apps_with_streams():
                bare |= app.streams()
        else:
            bare[root.PATH] = root.application
        dispatch = Dispatch(
            bare,
            calls=calls,
            callers=self._worker.callers,
            budget=self._worker.incoming,
            traffic=self._worker.traffic,
            programs=prefixes,
            otherwise=django,
        )

        if _is_on_loop():
            self.begin()

        sockets = Handshakes(routing.router_of(self._worker), programs=prefixes)
        both = ProtocolTypeRouter({"http": dispatch, "websocket": sockets})
        applies = partial(is_of_program, prefixes=prefixes)
        programs = Origins(both, settings.SAMSA_ALLOWED_ORIGINS, applies=applies)
        return Forwarded(programs, settings.TRUSTED_PROXIES)


def place() -> Place:
    """Return the place of this process, from its settings."""
    try:
        address_of(settings.REDIS_URL or "unix:///")
    except BadAddress as error:
        raise ImproperlyConfigured(
            f"REDIS_URL cannot be read: {error}; give redis://HOST:PORT, rediss:// for TLS, or"
            " unset it for a server of the home's own"
        ) from None
    return Place(
        name=settings.SAMSA_WORKER,
        home=settings.SAMSA_HOME,
        sockets=settings.SAMSA_SOCKETS,
        bootstrap=settings.SAMSA_GATEWAY_BOOTSTRAP,
        shared_url=settings.REDIS_URL,
    )


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # Loaded before the server runs, which starts it then.
        return False
    return True


def apps_with_streams() -> Iterator[HasStreams]:
    for app in apps.get_app_configs():
        if isinstance(app, HasStreams):
            yield app


program: Final = Program()
application: Final = program.application
