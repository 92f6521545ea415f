"""Parses connection URLs in the form of JDBC or of PostgreSQL.

Some parameters of libpq read files of its host or lead elsewhere, so a table lists the allowed
ones. A password is not allowed, since it would be visible wherever the URL is shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from connectors.sdk.errors import ConfigError

SCHEMES: Final = ("postgresql", "postgres")
DEFAULT_PORT: Final = 5432
SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
# Parameter of a URL, in JDBC's or libpq's name -> field of an address.
PARAMETERS: Final[Mapping[str, str]] = {
    "user": "user",
    "sslmode": "ssl_mode",
    "currentSchema": "schema",
    "ssl": "ssl",
    "ApplicationName": "application",
    "application_name": "application",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    host: str
    port: int
    database: str
    user: str = ""
    ssl_mode: str = "prefer"
    schema: str = ""
    application: str = "samsa"
    ssl: str = field(default="", repr=False)


def parse_address(text: str) -> Address:
    """Parse a URL; ConfigError names the part that is not allowed."""
    try:
        split = urlsplit(text.strip().removeprefix("jdbc:"))
        port = split.port or DEFAULT_PORT
    except ValueError as error:
        raise ConfigError(f"the URL cannot be read: {error}") from error
    if split.scheme not in SCHEMES:
        raise ConfigError("write jdbc:postgresql://host:port/database, or postgresql://…")
    if split.password is not None:
        raise ConfigError("a URL is shown to others: put the password into connection.password")
    if not split.hostname or "," in split.netloc:
        raise ConfigError("the URL names one host, as in postgresql://host:5432/database")
    database = unquote(split.path.removeprefix("/"))
    if not database or "/" in database:
        raise ConfigError("the URL ends with the name of a database")
    parameters = _parameters(split.query)
    if parameters.pop("ssl", "false") == "true":
        parameters.setdefault("ssl_mode", "require")
    if (mode := parameters.get("ssl_mode", "prefer")) not in SSL_MODES:
        raise ConfigError(f"sslmode={mode} is not one of {', '.join(SSL_MODES)}")
    named = {"user": unquote(split.username or "")} | parameters
    return Address(host=split.hostname, port=port, database=database, **named)


def problem(text: Any) -> str | None:
    """Check the value of a key with a URL."""
    if text is None:
        return None
    try:
        parse_address(text)
    except ConfigError as error:
        return str(error)
    return None


def _parameters(query: str) -> dict[str, str]:
    found = {}
    for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=50):
        if name == "password":
            raise ConfigError("a URL is shown to others: put the password into connection.password")
        if name not in PARAMETERS:
            raise ConfigError(
                f"the parameter {name} is not served; a URL may have {', '.join(PARAMETERS)}"
            )
        found[PARAMETERS[name]] = value
    return found
