"""Calls Kafka Connect's REST API of a home, or of any Connect worker, for the command line."""

import functools
import json
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import click

from brokers.http.address import Address
from brokers.http.client import Connection
from brokers.http.protocol import NoResponse, ResponseTooLarge
from brokers.supervisor.home import Home
from cli.home import HOME_OPTION

URL_VARIABLE: Final = "SAMSA_CONNECT"
TOKEN_VARIABLE: Final = "SAMSA_TOKEN"  # noqa: S105 - the name of a variable
# A new connector may check its other side for 5 s, and a database may be slow.
TIMEOUT_S: Final = 60.0
# Enough for a thousand connectors with a long query each.
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
# A token has about 60 characters; the limit keeps a wrong file from being read completely.
MAX_TOKEN_BYTES: Final = 4096
# The length of an answer that is not JSON in a message: enough to identify the server.
SHOWN: Final = 200
# The end of Connect's message for an invalid config, meant for other HTTP clients.
ADVICE_TO_CLIENTS: Final = "\nYou can also find the above list of errors at the endpoint"
# Where the web server has Kafka Connect's REST, and its name among the workers of a home.
PREFIX: Final = "/connect"
WEB: Final = "web"
NOT_FOUND: Final = 404
UNAUTHORIZED: Final = 401


class Refused(click.ClickException):
    """An error of the server, or no answer."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """A REST API of Kafka Connect."""

    url: str
    token: str = field(default="", repr=False)
    ca_file: Path | None = None
    # The web server's own socket, which knows the owner of the home without a token.
    own_socket: Path | None = None

    def ask(self, method: str, *parts: str, body: object = None, **query: str) -> Any:  # noqa: ANN401 - as JSON has it
        """Return the JSON answer to a call; Refused for an error status."""
        _, found = self.answer(method, *parts, body=body, **query)
        return found

    def answer(
        self, method: str, *parts: str, body: object = None, **query: str
    ) -> tuple[int, Any]:
        """Return the status, too."""
        below = PREFIX if self.own_socket else urlsplit(self.url).path.rstrip("/")
        path = "/".join([below, *(quote(part, safe="") for part in parts)])
        sent = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"}
        if sent is not None:
            headers["Content-Type"] = "application/json"
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection = Connection(self._address(), wait_seconds=TIMEOUT_S, max_bytes=MAX_ANSWER_BYTES)
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            response = connection.exchange(method, target, headers=headers, body=sent)
        except ResponseTooLarge:
            raise Refused(
                f"{self.url} sent more than {MAX_ANSWER_BYTES:,} bytes: request less at a time"
            ) from None
        except NoResponse as error:
            raise Refused(
                f"{self.url} does not answer ({error}): check with `./samsa status` whether the "
                "console runs, or name the address with --connect"
            ) from None
        finally:
            connection.close()
        return response.status, self._read(response.status, response.body)

    def _read(self, status: int, told: bytes) -> Any:  # noqa: ANN401 - as JSON has it
        try:
            found = json.loads(told) if told else None
        except (ValueError, RecursionError):
            shown = told[:SHOWN].decode(errors="replace")
            raise Refused(
                f"{self.url} answered {status}, but not in JSON: {shown!r}; is this the address "
                "of a Kafka Connect REST API?",
                status=status,
            ) from None
        if status < HTTPStatus.BAD_REQUEST:
            return found
        message = found.get("message") if isinstance(found, dict) else None
        if status == UNAUTHORIZED:
            # The server's advice to callers without a token is for other HTTP clients.
            why = (message if self.token else "") or "the Connect API requires a token"
            message = (
                f"{why}. Create one with `./samsa tokens create NAME --admin`, and pass it in "
                f"${TOKEN_VARIABLE} or with --token-file"
            )
        refusal = str(message or f"{self.url} answers {status}").partition(ADVICE_TO_CLIENTS)[0]
        raise Refused(refusal, status=status)

    def _address(self) -> Address:
        if self.own_socket is not None:
            return Address(path=self.own_socket)
        place = urlsplit(self.url)
        try:
            host, port = place.hostname, place.port
        except ValueError:
            host, port = None, None
        if not host or place.scheme not in {"http", "https"}:
            raise click.UsageError(
                f"{self.url!r} is not an address: give one like http://HOST:PORT or "
                "https://HOST:PORT/connect"
            )
        if place.scheme == "http":
            return Address(host=host, port=80 if port is None else port)
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise click.UsageError(f"{self.ca_file} cannot be read: {error}") from None
        return Address(host=host, port=443 if port is None else port, tls=context)


def reaches_connect(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a REST API to a command, as `connect`."""

    @click.option(
        "--connect",
        "url",
        envvar=URL_VARIABLE,
        metavar="URL",
        help=f"Address of the Kafka Connect REST API. Default: ${URL_VARIABLE}, else the home's.",
    )
    @click.option(
        "--token-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"File with the access token. Default: the token in ${TOKEN_VARIABLE}; the owner of a"
        " home needs none on its machine.",
    )
    @click.option(
        "--ca-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="CA certificates (PEM) to trust instead of the system's.",
    )
    @HOME_OPTION
    @functools.wraps(function)
    def command(
        *,
        url: str | None,
        token_file: Path | None,
        ca_file: Path | None,
        home: Path,
        **options: object,
    ) -> None:
        token = token_of(token_file)
        found = Connect(
            url=url or url_of(home),
            token=token,
            ca_file=ca_file,
            own_socket=None if url or token else own_socket_of(home),
        )
        function(connect=found, **options)

    return command


def url_of(home: Path) -> str:
    """Return the address of a home's API: its own port, or else that of the console."""
    try:
        settings = json.loads(Home(home).settings_file.read_text())
    except (OSError, ValueError):
        settings = None
    told: Mapping[str, Any] = settings if isinstance(settings, dict) else {}
    if isinstance(told.get("connect"), str):
        return str(told["connect"])
    if isinstance(told.get("console"), str):
        return f"{told['console'].rstrip('/')}/connect"
    raise click.UsageError(
        f"{home} is not running: start it with `./samsa up`, name another home with --home, or an "
        "address with --connect"
    )


def own_socket_of(home: Path) -> Path | None:
    """Return the own socket of a running home's web server, if this user may open it."""
    found = Home(home)
    if not found.is_owned():
        return None
    path = found.worker_socket(WEB)
    return path if path.is_socket() and os.access(path, os.R_OK | os.W_OK) else None


def token_of(file: Path | None) -> str:
    if file is None:
        token, where = os.environ.get(TOKEN_VARIABLE, ""), f"${TOKEN_VARIABLE}"
    else:
        where = str(file)
        try:
            with file.open("rb") as stream:
                token = stream.read(MAX_TOKEN_BYTES).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"{file} cannot be read: {error}") from None
    token = token.strip()
    # No message shows the value.
    if not (token.isascii() and (token.isprintable() or not token)) or " " in token:
        raise click.UsageError(f"{where} does not contain a token: expected one word like samsa_…")
    return token
