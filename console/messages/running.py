"""The record streams of this web process."""

from typing import Final

from console.events import running
from console.messages.endpoint import Endpoint
from console.messages.jobs import Means

# The ASGI application of the paths in `endpoint.ROUTES`. Its streams end with sessions and with the
# process as event streams do, because the same hub has them.
application: Final = Endpoint(running.hub, running.watch, Means())
