"""Signs and verifies the caller of a call that one worker passes to another, for some seconds.

A signature is valid for one call: its method and its URL. The token or password stays in the worker
that received it.
"""

from typing import Any, Final

from django.core import signing

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from gateway.rest.calls import Scope, headers_of
from gateway.rest.codes import ApiError, Code

HEADER: Final = "samsa-caller"
SALT: Final = "samsa.rest.caller"
# Workers share a clock, and pass calls on at once.
GOOD_FOR_S: Final = 10
# The rights that passed calls need; others are omitted, so that the header stays short.
NEEDED: Final = frozenset({Operation.READ_PAYLOADS, Operation.RESET_GROUPS})


class PassedCallers:
    """Trusts callers that another worker has signed."""

    async def of(self, scope: Scope) -> Caller:
        told = headers_of(scope).get(HEADER, "")
        try:
            value = signing.loads(told, salt=SALT, max_age=GOOD_FOR_S)
        except signing.BadSignature:
            value = None
        if value is None or value.get("call") != [scope["method"], target_of(scope)]:
            raise ApiError(
                Code.NOT_AUTHENTICATED, "no worker has signed this call: ask the gateway's port"
            )
        return caller_of(value)


def target_of(scope: Scope) -> str:
    """Return the path and query of a call as they were sent."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    path, _, _ = raw.partition(b"?")
    query: bytes = scope.get("query_string", b"")
    return (path + b"?" * bool(query) + query).decode("latin-1")


def signed(caller: Caller, method: str, target: str) -> str:
    """Return a caller, and the call that it makes, as the value of a header."""
    grants = [
        [
            grant.role and grant.role.value,
            grant.operation and grant.operation.value,
            grant.cluster,
            grant.kind and grant.kind.value,
            grant.pattern,
        ]
        for grant in caller.rights.grants
        if grant.operations & NEEDED
    ]
    value = {
        "call": [method, target],
        "kind": caller.kind.value,
        "name": caller.name,
        "number": caller.number,
    }
    return signing.dumps({**value, "grants": grants}, salt=SALT, compress=True)


def caller_of(value: dict[str, Any]) -> Caller:
    """Return the caller that another worker of ours has signed."""
    grants = [
        Grant(
            role=None if role is None else Role(role),
            operation=None if operation is None else Operation(operation),
            cluster=cluster,
            kind=None if kind is None else Kind(kind),
            pattern=pattern,
        )
        for role, operation, cluster, kind, pattern in value["grants"]
    ]
    return Caller(
        kind=CallerKind(value["kind"]),
        name=value["name"],
        number=value["number"],
        rights=Rights(grants),
    )
