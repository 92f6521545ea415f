"""The streams of records of this web process."""

from typing import Final

from console.events import running
from console.messages.endpoint import Endpoint
from console.messages.jobs import Means

# The ASGI application of the addresses in `endpoint.ROUTES`. Its streams end with the sessions and
# with the process as event streams do, because they are among those of the same hub.
application: Final = Endpoint(running.hub, running.watch, Means())
