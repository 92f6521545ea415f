"""The ASGI application that the web server loads: the door, event streams, Django behind them."""

import logging
import os
import warnings

from django.core.asgi import get_asgi_application
from django.urls import get_resolver

from gateway import home
from gateway.dispatch import Dispatch
from gateway.health import Application, Door

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

# Static files leave by WhiteNoise as ordinary iterators, which Django collects first. They are a
# few kilobytes each, so that is no harm, and nothing to warn of in the log of every start.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")


def without_traceback(record: logging.LogRecord) -> bool:
    """Keep the sentence of a record, and none of the thirty lines below it."""
    record.exc_info = None
    return True


# Anybody can ask by a wrong name, as often as they like.
logging.getLogger("django.security.DisallowedHost").addFilter(without_traceback)


def show_audit_log() -> None:
    """Write what `gateway.access.audit` tells to the log of this process."""
    audit = logging.getLogger("gateway.access.audit")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    audit.addHandler(handler)
    audit.setLevel(logging.INFO)
    audit.propagate = False


def load() -> Application:
    """Read the settings and make Django ready."""
    django: Application = get_asgi_application()
    show_audit_log()
    # Django would read the addresses at the first request: a mistake in them must end the start.
    assert get_resolver().url_patterns, "the console has pages"
    # It reads Django's models, which are there only now.
    from console.events import endpoint, running  # noqa: PLC0415
    from console.messages import endpoint as messages  # noqa: PLC0415
    from console.messages import running as reading  # noqa: PLC0415

    bare = {endpoint.PATH: running.application}
    bare |= dict.fromkeys(messages.ROUTES, reading.application)
    return Dispatch(bare, otherwise=django)


application = Door(load=load, missing=home.missing)


def drain() -> None:
    """End all event streams; there are none before Django is ready."""
    if application.is_loaded:
        from console.events import running  # noqa: PLC0415 - as in load

        running.drain()
