"""Routes handshakes of WebSockets to the consumer of their path."""

from functools import cache

from channels.routing import URLRouter
from django.urls import path, re_path

from gateway.rest.calls import Application
from gateway.rest.worker import Worker
from gateway.ws.consumers import Endpoint, NotServed
from gateway.ws.endpoint import PATH, Sockets, services_of


def router_of(worker: Worker) -> Application:
    """Return the ASGI application of a worker's WebSockets."""

    @cache
    def sockets() -> Sockets:
        # Created with the first socket: a worker is created before its loop runs.
        return worker.held_speaking(Sockets(services_of(worker)))

    router: Application = URLRouter(
        [
            path(PATH.removeprefix("/"), Endpoint.as_asgi(sockets=sockets)),
            re_path("", NotServed.as_asgi()),
        ]
    )
    return router
