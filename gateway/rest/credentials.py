"""Reads the credentials of a call from its headers. Pure.

Credentials are accepted in headers only: URLs end up in logs, histories and at other sites.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_to_bytes

from gateway.access import token_text
from gateway.access.token_text import BadToken
from gateway.addresses import Network, client_address
from gateway.rest.calls import Scope, headers_of
from gateway.rest.codes import ApiError, Code

# The user name of Basic whose password is a token, for programs without Bearer support.
TOKEN_USER: Final = "token"  # noqa: S105 - a word
# The limits of the console's sign-in; no user has a longer name or password.
MAX_NAME_CHARS: Final = 150
MAX_PASSWORD_CHARS: Final = 4_096
# Fits both in base64, after the scheme.
MAX_HEADER_CHARS: Final = 8_192
HOW: Final = (
    "show a token as `Authorization: Bearer TOKEN`, or Basic with a user of the console;"
    " `./samsa tokens create NAME --read PATTERN` makes a token"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call, as far as authentication needs it. Header names are in lower case."""

    method: str
    headers: Mapping[str, str]
    path: str = ""
    query: bytes = b""
    address: str = ""
    is_secure: bool = False
    is_socket: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token, identified by its digest from here on."""

    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Password:
    user: str
    password: str = field(repr=False)


Shown = Token | Password


def asked_of(scope: Scope, trusted: Sequence[Network] = ()) -> Asked:
    """Return the credentials and address of an HTTP or WebSocket scope."""
    headers = headers_of(scope)
    peer = (scope.get("client") or ("", 0))[0]
    return Asked(
        method=scope.get("method", "GET"),
        headers=headers,
        path=scope["path"],
        query=scope.get("query_string", b""),
        address=client_address(peer, headers.get("x-forwarded-for", ""), trusted),
        is_secure=scope.get("scheme") in {"https", "wss"},
        is_socket=scope["type"] == "websocket",
    )


def refuse_in_address(asked: Asked) -> None:
    """Refuse a token in the URL, without repeating it."""
    address = f"{asked.path}?{asked.query.decode('latin-1')}"
    quoted = unquote_to_bytes(address.encode("utf-8", "replace")).decode("latin-1")
    if token_text.holds_token(address) or token_text.holds_token(quoted):
        raise ApiError(
            Code.BAD_REQUEST,
            "the address contains a token, which logs and histories keep: revoke it, create "
            "another one, and send that as `Authorization: Bearer TOKEN`",
        )


def shown_in(authorization: str) -> Shown | None:
    """Return the credentials of an Authorization header; None if there is none."""
    if not authorization:
        return None
    if len(authorization) > MAX_HEADER_CHARS:
        raise not_authenticated(
            f"the header Authorization has {len(authorization)} characters;"
            f" at most {MAX_HEADER_CHARS} fit"
        )
    scheme, _, rest = authorization.strip().partition(" ")
    match scheme.lower():
        case "bearer":
            return _token(rest.strip())
        case "basic":
            return _basic(rest.strip())
    raise not_authenticated(f"no scheme of Authorization but Bearer and Basic is known here; {HOW}")


def not_authenticated(message: str) -> ApiError:
    return ApiError(Code.NOT_AUTHENTICATED, message)


def _token(text: str) -> Token:
    try:
        token_text.check(text)
    except BadToken as error:
        raise not_authenticated(str(error)) from None
    return Token(digest=token_text.digest(text))


def _basic(encoded: str) -> Shown:
    try:
        decoded = base64.b64decode(encoded, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise not_authenticated("Basic wants USER:PASSWORD in UTF-8 and base64") from None
    user, colon, password = decoded.partition(":")
    if not colon:
        raise not_authenticated("Basic wants USER:PASSWORD, and there is no colon")
    if user == TOKEN_USER and password.startswith(token_text.PREFIX):
        return _token(password)
    # No name holds a NUL, and PostgreSQL rejects a query with one.
    if "\0" in user or len(user) > MAX_NAME_CHARS or len(password) > MAX_PASSWORD_CHARS:
        raise not_authenticated("no user of the console has such a name and password")
    return Password(user=user, password=password)
