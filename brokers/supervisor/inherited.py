"""Lists the variables of the supervisor's environment that each kind of process gets.

A process gets only the variables that it reads, because every program of the user can read its
environment, and crash reports contain it. A database URL holds a password, so only processes that
open the database get it (ADR 0004). `components` has the variables that the supervisor itself sets.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from brokers.supervisor.components import CONNECT_KINDS, Kind

EVERY_KIND: Final = frozenset(Kind)
DATABASE_KINDS: Final = frozenset(Kind) - {Kind.BROKER, Kind.VALKEY}
# Names of variables that configs of connectors may refer to, and what such a name may be.
REFERRED: Final = "SAMSA_CONNECT_ENV_NAMES"
WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Processes that serve HTTP.
DOOR_KINDS: Final = frozenset({Kind.WEB, Kind.GATEWAY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Names, each of which may end in `*`; the kinds that get them; and why."""

    names: tuple[str, ...]
    kinds: frozenset[Kind]
    reason: str


ROWS: Final = (
    Row(
        names=("PATH", "HOME", "USER", "LOGNAME", "TMPDIR"),
        kinds=EVERY_KIND,
        reason="Python and libpq look there for programs, for the user's files and for room",
    ),
    Row(
        names=("LANG", "LANGUAGE", "LC_*", "TZ"),
        kinds=EVERY_KIND,
        reason="the encoding of file names and the words of the system's errors",
    ),
    Row(
        names=("PYTHON*", "LD_LIBRARY_PATH"),
        kinds=EVERY_KIND,
        reason="settings of the interpreter, and the place of its libraries",
    ),
    Row(
        names=("MALLOC_*", "GLIBC_TUNABLES"),
        kinds=EVERY_KIND,
        reason="the memory of long-lived processes is tuned here",
    ),
    Row(
        names=("SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF", "OPENSSL_MODULES"),
        kinds=EVERY_KIND,
        reason="certificates that OpenSSL trusts, and algorithms that it may use",
    ),
    Row(
        names=("SAMSA_DEFAULTS",),
        kinds=frozenset({Kind.BROKER}),
        reason="static broker configs",
    ),
    Row(
        names=("DATABASE_URL", "PG*"),
        kinds=DATABASE_KINDS,
        reason="address of the database and login of libpq; holds a password",
    ),
    Row(
        names=("SAMSA_COLLECTOR",),
        kinds=frozenset({Kind.COLLECTOR, Kind.WEB}),
        reason="the address on which the collector is also asked, with the metrics key",
    ),
    Row(
        names=("KRB5*",),
        kinds=DATABASE_KINDS,
        reason="the tickets by which libpq logs in where the server asks for GSSAPI",
    ),
    Row(
        names=(
            *("SAMSA_ALLOWED_HOSTS", "SAMSA_TRUSTED_ORIGINS"),
            *("SAMSA_TRUSTED_PROXIES", "SAMSA_HTTPS", "SAMSA_ALLOWED_ORIGINS"),
        ),
        kinds=DOOR_KINDS,
        reason="how clients of HTTP come; a mistake in one must not stop the agent",
    ),
    Row(
        names=("SAMSA_REST_*",),
        kinds=DOOR_KINDS,
        reason="how much a program may do in a second",
    ),
    Row(
        names=("REDIS_URL",),
        kinds=DOOR_KINDS | CONNECT_KINDS,
        reason="state shared by workers of the gateway, and messages of connectors; may hold a "
        "password",
    ),
    Row(
        names=("SAMSA_CONNECT_*",),
        kinds=DOOR_KINDS | {Kind.WORKER},
        reason="files, variables and hosts that configs of connectors may name, and the key file",
    ),
    Row(
        names=("SAMSA_SPARK*", "SPARK_CONF_DIR", "JAVA_HOME", "JDK_JAVA_OPTIONS"),
        kinds=frozenset({Kind.WORKER}),
        reason="settings of Spark connectors, the token of a Connect server included, and of Java",
    ),
    Row(
        names=("SAMSA_SESSION_IDLE_MINUTES", "SAMSA_SESSION_LIMIT_HOURS"),
        kinds=frozenset({Kind.WEB}),
        reason="for how long a browser stays signed in",
    ),
)


def inherited(kind: Kind, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a kind of process gets."""
    patterns = [name for row in ROWS if kind in row.kinds for name in row.names]
    if kind is Kind.WORKER:
        # Names that the operator lets configs refer to; a pattern would allow more.
        named = environment.get(REFERRED, "").split(",")
        patterns += [name.strip() for name in named if WORD.fullmatch(name.strip())]
    return {
        name: value
        for name, value in environment.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
