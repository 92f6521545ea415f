"""Answers the gateway's own address, by which programs of the published interface probe it.

Without a caller: a probe has no token, and the answer says nothing.
"""

from typing import Final

from gateway.rest.calls import Call, Receive, Scope, Send
from gateway.rest.codes import ApiError, Code
from gateway.rest.router import NOBODY

PATH: Final = "/"
V2: Final = "application/vnd.kafka.v2+json"
METHODS: Final = ("GET", "HEAD", "OPTIONS")


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    call = Call(scope, receive, send, caller=NOBODY, cluster_id="", parameters={})
    allow = [("Allow", ", ".join(METHODS))]
    if call.method == "OPTIONS":
        await call.answer(200, content_type=V2, headers=allow)
    elif call.method in METHODS:
        await call.answer(200, {}, content_type=V2)
    else:
        error = ApiError(
            Code.METHOD_NOT_ALLOWED, f"{call.method} is not served at {PATH}: send {METHODS[0]}"
        )
        await call.answer(error.code.status, error.body(), content_type=V2, headers=allow)
