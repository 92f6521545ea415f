"""Parses SAMSA_SPARK: a Spark in this process, a Connect server, or a standalone cluster.

Pure: returns a target or refuses the text. A session beyond this machine needs a secret.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from typing import Final
from urllib.parse import unquote, urlsplit

from spark_integration.jobs.errors import SparkRefused

VARIABLE: Final = "SAMSA_SPARK"
TOKEN_VARIABLE: Final = "SAMSA_SPARK_TOKEN"  # noqa: S105 (its name)
FORMS: Final = "local, local[2], sc://HOST:15002 or spark://HOST:7077"
LOCAL: Final = re.compile(r"local(\[(?:\*|[1-9][0-9]{0,3})\])?")
# The default ports of Spark.
CONNECT_PORT: Final = 15002
STANDALONE_PORT: Final = 7077
# Settings in the address of a Connect server: other ones may be secrets.
SETTING: Final = re.compile(r";([\w.-]+)=([^;\s']*)")
HARMLESS: Final = frozenset({"use_ssl", "user_id", "user_agent", "session_id"})
# A user name and a password; the settings after `/;` may have an @ as well.
USER: Final = re.compile(r"//(?:(?!/;)\S)*@")
# A token that is masked already stays as it is, with the text after it.
OPEN_TOKEN: Final = re.compile(r"(?i)(token=)(?!…)[^;]*")
# Not allowed in host names: after these, settings would begin without a slash, perhaps secrets.
NO_HOST: Final = frozenset(";=@")
# The only name for which Spark's client sends a token without TLS.
THIS_MACHINE: Final = "localhost"


class Kind(Enum):
    # In a JVM of this process.
    LOCAL = "local"
    # Over a server of Spark Connect.
    CONNECT = "connect"
    # In a JVM of this process, with executors of a standalone master.
    STANDALONE = "standalone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    kind: Kind
    # In Spark's form, without a secret.
    url: str
    # The shared secret; empty for none.
    token: str = field(default="", repr=False)
    # Whether other machines cannot reach any part of it.
    is_loopback: bool = True


def parse_target(text: str, *, token: str = "") -> Target:
    """Parse a value of SAMSA_SPARK; an empty one means `local`."""
    if found := LOCAL.fullmatch(text or "local"):
        return Target(kind=Kind.LOCAL, url=f"local{found[1] or '[*]'}")
    if text.startswith("sc://"):
        return connect_target(text, token)
    if text.startswith("spark://"):
        return standalone_target(text, token)
    raise SparkRefused(f"{VARIABLE} is {shown(text)!r}; give {FORMS}")


def connect_target(text: str, token: str) -> Target:
    place = text.removeprefix("sc://").partition("/;")[0]
    if NO_HOST.intersection(place):
        raise SparkRefused(
            f"{VARIABLE} is {shown(text)!r}; give sc://HOST:{CONNECT_PORT},"
            f" with settings as sc://HOST:{CONNECT_PORT}/;name=value"
        )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port or CONNECT_PORT
        settings = parse_settings(parts.path)
    except ValueError as error:
        raise SparkRefused(
            f"{VARIABLE} is {shown(text)!r}, no address of a server: {shown(str(error))}"
        ) from None
    if not host or parts.username or parts.query or parts.fragment:
        raise SparkRefused(f"{VARIABLE} is {shown(text)!r}; give sc://HOST:{CONNECT_PORT}")
    own = settings.pop("token", "")
    if own and token and own != token:
        raise SparkRefused(f"{VARIABLE} and {TOKEN_VARIABLE} give different tokens; keep one")
    token = own or token
    is_near = is_loopback(host)
    if not token and not is_near:
        raise SparkRefused(no_token(text))
    # With this name Spark's client uses no TLS, which its server does not support.
    name = THIS_MACHINE if is_near else host
    rest = "".join(f";{key}={value}" for key, value in settings.items())
    return Target(
        kind=Kind.CONNECT,
        url=f"sc://{bracketed(name)}:{port}/{rest}",
        token=token,
        is_loopback=is_near,
    )


def standalone_target(text: str, token: str) -> Target:
    """Parse one master, or several of which one leads."""
    if NO_HOST.intersection(text):
        raise SparkRefused(
            f"{VARIABLE} is {shown(text)!r}; give spark://HOST:{STANDALONE_PORT},"
            f" and a secret as {TOKEN_VARIABLE}"
        )
    masters = []
    for place in text.removeprefix("spark://").split(","):
        try:
            parts = urlsplit(f"spark://{place}")
            host, port = parts.hostname, parts.port or STANDALONE_PORT
        except ValueError as error:
            raise SparkRefused(
                f"{VARIABLE} is {shown(text)!r}, no address of a master: {shown(str(error))}"
            ) from None
        if not host or parts.username or parts.path or parts.query or parts.fragment:
            raise SparkRefused(
                f"{VARIABLE} is {shown(text)!r}; give spark://HOST:{STANDALONE_PORT}"
            )
        masters.append((host, port))
    is_near = all(is_loopback(host) for host, _ in masters)
    if not token and not is_near:
        raise SparkRefused(no_token(text))
    return Target(
        kind=Kind.STANDALONE,
        url="spark://" + ",".join(f"{bracketed(host)}:{port}" for host, port in masters),
        token=token,
        is_loopback=is_near,
    )


def parse_settings(path: str) -> dict[str, str]:
    """Parse `/;name=value;…`, the settings of Spark's client in its address."""
    if path in ("", "/"):
        return {}
    if not path.startswith("/;"):
        raise ValueError(f"a path has to be /;name=value, this is {shown(path)}")
    settings = {}
    for pair in path.removeprefix("/;").split(";"):
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise ValueError("a setting has to be name=value")
        settings[name] = unquote(value) if name == "token" else value
    return settings


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == THIS_MACHINE


def no_token(text: str) -> str:
    return (
        f"{VARIABLE} is {shown(text)!r}, which is on another machine: "
        f"set {TOKEN_VARIABLE} to the secret that the other side was started with"
    )


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def shown(text: str) -> str:
    """Mask everything in a text or address that may be secret."""
    hidden = OPEN_TOKEN.sub(r"\1…", USER.sub("//…@", text))
    return SETTING.sub(lambda m: m[0] if m[1].lower() in HARMLESS else f";{m[1]}=…", hidden)
