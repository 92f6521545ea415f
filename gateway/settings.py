"""Django's settings, read from the environment once.

With `home`, the only reader of the environment on Django's side: other modules use
`django.conf.settings`. One variable, SAMSA_HOME, names the directory of all that a run writes; the
others have defaults that suit a single machine.
"""

import re
import secrets
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import environ
from django.core.exceptions import ImproperlyConfigured

from brokers.key_files import KeyFile
from gateway import home
from gateway.addresses import NotAnAddress, networks
from gateway.session_keys import SessionKey, ValidKeys

env = environ.Env()

CHECKOUT: Final = Path(__file__).resolve().parents[1]
SAMSA_HOME: Final = home.SAMSA_HOME
# The socket between this host's agent and its brokers.
SAMSA_AGENT_SOCKET: Final = Path(
    env.str("SAMSA_AGENT_SOCKET", default=str(SAMSA_HOME / "run" / "agent.sock"))
)
# The socket of this home's collector; another path if that of run/ is too long.
SAMSA_COLLECTOR_SOCKET: Final = Path(
    env.str("SAMSA_COLLECTOR_SOCKET", default=str(SAMSA_HOME / "run" / "collector.sock"))
)


def collector_address(written: str) -> tuple[str, int] | None:
    """Return the address in SAMSA_COLLECTOR, HOST:PORT; None if it is not set."""
    if not written:
        return None
    host, _, port = written.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ImproperlyConfigured(
            f"SAMSA_COLLECTOR is {written!r}; give HOST:PORT, as 127.0.0.1:9300"
        )
    return host.strip("[]"), int(port)


# An additional address of the collector, which requires the metrics key.
SAMSA_COLLECTOR: Final = collector_address(env.str("SAMSA_COLLECTOR", default=""))
# The topic to which the collector writes its samples; empty for none.
SAMSA_METRICS_TOPIC: Final = env.str("SAMSA_METRICS_TOPIC", default="")
# The clients of this process: browsers ("web") or programs ("rest"). Set by the process.
DOOR: Final = env.str("SAMSA_DOOR", default="web")
# The name of this process among the workers of the home, and the directory of their sockets.
SAMSA_WORKER: Final = env.str("SAMSA_WORKER", default="web")
SAMSA_SOCKETS: Final = Path(env.str("SAMSA_SOCKETS", default=str(SAMSA_HOME / "run")))
# Brokers, as HOST:PORT,…; empty if the home's supervisor provides them. Not SAMSA_BOOTSTRAP, which
# names the cluster of a user's commands.
SAMSA_GATEWAY_BOOTSTRAP: Final = env.str("SAMSA_GATEWAY_BOOTSTRAP", default="")
# The server that workers share; empty if each works alone. It may hold a password.
REDIS_URL: Final = env.str("REDIS_URL", default="")
# A pipe that gets one line once the process serves; -1 for none.
SAMSA_READY_FD: Final = env.int("SAMSA_READY_FD", default=-1)
SAMSA_SECRETS: Final = home.SAMSA_SECRETS

_SESSION_FILE: Final = KeyFile(home.SESSION_KEYS, monotonic=time.monotonic)
SECRET_KEY = SessionKey(_SESSION_FILE) if home.IS_NAMED else secrets.token_urlsafe(50)
SECRET_KEY_FALLBACKS = ValidKeys(_SESSION_FILE) if home.IS_NAMED else []
DEBUG = False


def host_patterns(*hosts: str) -> list[str]:
    """Return hosts in the form that Django compares: IPv6 in brackets, as browsers send it."""
    named = [host for host in hosts if host not in EVERYWHERE]
    return [f"[{host}]" if ":" in host and host[0] != "[" else host for host in named]


# Addresses to bind to, but not to connect to.
EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - the rule is about binding to it
# A page of another site can make its own host name resolve to this machine, and read the answers;
# so the console accepts only host names that this machine or its operator has defined.
LOOPBACK_NAMES: Final = (".localhost", "127.0.0.1", "[::1]")
ALLOWED_HOSTS = [
    *LOOPBACK_NAMES,
    *host_patterns(env.str("SAMSA_BIND", default=""), env.str("SAMSA_ADVERTISE", default="")),
    *host_patterns(*env.list("SAMSA_ALLOWED_HOSTS", default=[])),
]
CSRF_TRUSTED_ORIGINS = env.list("SAMSA_TRUSTED_ORIGINS", default=[])
try:
    # The peers whose X-Forwarded-For is trusted; none by default.
    TRUSTED_PROXIES = networks(env.list("SAMSA_TRUSTED_PROXIES", default=[]))
except NotAnAddress as error:
    raise ImproperlyConfigured(
        f"SAMSA_TRUSTED_PROXIES has {error}; give addresses or networks, as 10.0.0.7,10.1.0.0/16"
    ) from None


def origins(written: list[str]) -> tuple[str, ...]:
    """Return origins in the form of browsers: scheme and host, and a non-default port."""
    for origin in written:
        if not re.fullmatch(r"https?://[a-z0-9.\-\[\]:]+", origin, re.ASCII):
            raise ImproperlyConfigured(
                f"SAMSA_ALLOWED_ORIGINS has {origin!r}; give origins, as https://shop.example,"
                " in lower case and without a path"
            )
    return tuple(written)


def rate(name: str, default: int) -> int:
    """Return a limit of a caller per second; 0 means no limit."""
    given: int = env.int(name, default=default)
    if given < 0:
        raise ImproperlyConfigured(f"{name} is {given}; give 0 for no limit, or more")
    return given


# Sites whose pages may call the programmatic interfaces, beside the console's own.
SAMSA_ALLOWED_ORIGINS: Final = origins(env.list("SAMSA_ALLOWED_ORIGINS", default=[]))
# What connector configs may reference by ${file:…} and ${env:…}: nothing by default.
SAMSA_CONNECT_SECRET_DIRS: Final = tuple(
    folder for folder in env.list("SAMSA_CONNECT_SECRET_DIRS", default=[]) if folder.startswith("/")
)
SAMSA_CONNECT_ENV_NAMES: Final = tuple(env.list("SAMSA_CONNECT_ENV_NAMES", default=[]))
# The keys that encrypt connector passwords; by default, below the home's secrets.
SAMSA_CONNECT_KEY_FILE: Final = Path(
    env.str("SAMSA_CONNECT_KEY_FILE", default=str(SAMSA_SECRETS / "connect"))
)
# Calls, records and bytes of one caller per second, as published interfaces limit them.
SAMSA_REST_RATES: Final = (
    rate("SAMSA_REST_REQUESTS_PER_S", 10_000),
    rate("SAMSA_REST_RECORDS_PER_S", 10_000),
    rate("SAMSA_REST_BYTES_PER_S", 10_485_760),
)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    # The viewer of the API page, as static files.
    "drf_spectacular_sidecar",
    "brokers.controlplane.apps.ControlplaneConfig",
    "gateway.access.apps.AccessConfig",
    "connectors.apps.ConnectorsConfig",
    "console",
]

# The largest form of a browser that has no session: of the sign-in, and of one that was sent late.
STRANGERS_BODY_BYTES: Final = 64 * 1024

MIDDLEWARE = [
    # First, so that every answer gets its headers, including static files and errors.
    "gateway.middleware.SecurityHeaders",
    "gateway.middleware.ClientAddress",
    "django.middleware.security.SecurityMiddleware",
    "gateway.middleware.CompressedStatic",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "console.preferences.PreferredZone",
    # Before the gate, which leads visitors who are not signed in to an empty form.
    "console.kept_forms.KeptForms",
    # Last, because it needs the session and the user of a request.
    "gateway.access.middleware.AccessGate",
]

if DOOR == "rest":
    # Programs have neither sessions nor pages; REST views authenticate them.
    MIDDLEWARE = [
        "gateway.middleware.SecurityHeaders",
        "gateway.middleware.ClientAddress",
        "django.middleware.security.SecurityMiddleware",
        # Sets the length of an answer.
        "django.middleware.common.CommonMiddleware",
    ]
# Names below REST may end in a slash, and a redirect would lose the body of a call.
APPEND_SLASH = False

# Names of enumerations in the OpenAPI description, as in the published one.
SPECTACULAR_SETTINGS = {
    "ENUM_NAME_OVERRIDES": {
        name: f"gateway.rest.v3.words.{words}"
        for name, words in (
            ("AclOperation", "ACL_OPERATIONS"),
            ("AclPatternType", "PATTERN_TYPES"),
            ("AclPermission", "ACL_PERMISSIONS"),
            ("AclResourceType", "ACL_RESOURCE_TYPES"),
            ("ConfigOperation", "CONFIG_OPERATIONS"),
            ("ConfigSource", "CONFIG_SOURCES"),
            ("ConsumerGroupState", "GROUP_STATES"),
            ("ConsumerGroupType", "GROUP_TYPES"),
        )
    }
}

ROOT_URLCONF = "gateway.urls" if DOOR == "web" else "gateway.rest.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "gateway.access.context.may",
                "gateway.access.context.session",
                "console.preferences.context",
                "console.kept_forms.context",
            ],
        },
    },
]

# How long a writer waits for its turn; transactions take a few milliseconds. A user waits for the
# answer, and gives up after ten seconds.
SQLITE_TIMEOUT_S: Final = 6
# Connections of one process: its threads, and one to spare.
POSTGRES_POOL: Final = {"min_size": 0, "max_size": 8, "timeout": 3}
POSTGRES_CONNECT_TIMEOUT_S: Final = 5
# A server whose machine is gone stays silent; without these, the kernel waits for two hours. It is
# probed after 5 s of silence, and given up some 10 s later.
POSTGRES_LIFE: Final = {
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
# What the server aborts: a statement that no page or agent still waits for, and the transaction of
# a client whose machine is gone, which holds locks that all others need.
POSTGRES_LIMITS: Final = "-c statement_timeout=30s -c idle_in_transaction_session_timeout=15s"

POSTGRES: Final = "django.db.backends.postgresql"
URL_ADVICE: Final = (
    "Give postgres://USER:PASSWORD@HOST:PORT/NAME, or unset it for the SQLite files of the home"
)
IS_ONE_DATABASE: Final = bool(env.str("DATABASE_URL", default=""))


def sqlite(name: str) -> dict[str, Any]:
    return {
        # Django's own backend, with a fair queue of writers.
        "ENGINE": "gateway.sqlite",
        "NAME": SAMSA_HOME / name,
        "OPTIONS": {
            # A transaction that reads first and writes later fails at once, whatever the timeout,
            # unless it takes the write lock at its beginning.
            "transaction_mode": "IMMEDIATE",
            "timeout": SQLITE_TIMEOUT_S,
            # FULL: a power failure must not undo a change that brokers have acted on.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        },
    }


def server(url: str) -> dict[str, Any]:
    """Return a database by its URL, with a pool, which saves a login per request."""
    scheme, separator, _ = url.partition("://")
    if env.DB_SCHEMES.get(scheme) != POSTGRES or not separator:
        kind = f"{scheme}://" if separator else "no scheme"
        raise ImproperlyConfigured(f"DATABASE_URL has {kind}, not postgres://. {URL_ADVICE}")
    try:
        found: dict[str, Any] = dict(env.db_url_config(url))
    except ValueError as error:
        # The URL holds a password, so only the error is repeated.
        raise ImproperlyConfigured(f"DATABASE_URL cannot be read: {error}. {URL_ADVICE}") from None
    # A connection that broke with its server is detected before it is used.
    found["CONN_HEALTH_CHECKS"] = True
    found["OPTIONS"] = {
        "pool": POSTGRES_POOL,
        "connect_timeout": POSTGRES_CONNECT_TIMEOUT_S,
        "options": POSTGRES_LIMITS,
        **POSTGRES_LIFE,
        **found.get("OPTIONS", {}),
    }
    return found


DATABASES: dict[str, dict[str, Any]] = (
    {name: server(env.str("DATABASE_URL")) for name in ("default", "cluster", "connect")}
    if IS_ONE_DATABASE
    else {
        "default": sqlite("web.db"),
        "cluster": sqlite("cluster.db"),
        "connect": sqlite("connect.db"),
    }
)
DATABASE_ROUTERS = ["gateway.database_router.DatabaseRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

PASSWORD_HASHERS = ["gateway.access.password_hasher.PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login"
# The only page for a user with a password set by another person, until it is changed.
PASSWORD_CHANGE_URL = "/password"  # noqa: S105 - an address

# A session ends after this long without activity.
IDLE_MINUTES: Final = env.int("SAMSA_SESSION_IDLE_MINUTES", default=30)
# Even an active session ends this long after sign-in.
LIMIT_HOURS: Final = env.int("SAMSA_SESSION_LIMIT_HOURS", default=12)
if not 2 <= IDLE_MINUTES <= 1440:
    # Activity is written once a minute, so one minute would end active sessions.
    raise ImproperlyConfigured(
        f"SAMSA_SESSION_IDLE_MINUTES is {IDLE_MINUTES}; give 2 to 1440 minutes"
    )
if not 1 <= LIMIT_HOURS <= 168:
    raise ImproperlyConfigured(f"SAMSA_SESSION_LIMIT_HOURS is {LIMIT_HOURS}; give 1 to 168 hours")
SESSION_IDLE: Final = timedelta(minutes=IDLE_MINUTES)
SESSION_LIMIT: Final = timedelta(hours=LIMIT_HOURS)
SESSION_ENGINE = "gateway.access.sessions"
# The browser drops the cookie at the latest possible end of the session.
SESSION_COOKIE_AGE = LIMIT_HOURS * 3600
# The one switch for browsers that connect by https, here or at a proxy in front.
IS_HTTPS: Final = env.bool("SAMSA_HTTPS", default=False)
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = IS_HTTPS
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = IS_HTTPS


def cookie_name(kind: str) -> str:
    """Return a cookie's name with a part of the cluster's id, if that is known.

    Browsers store cookies by host and not by port: two consoles of one machine would overwrite each
    other's. Web servers of one cluster share the name, as they share sessions. The prefix makes the
    browser refuse a cookie of this name from a sibling domain, or over http.
    """
    cluster = ""
    with suppress(OSError, UnicodeDecodeError):
        cluster = home.CLUSTER_ID.read_text(encoding="ascii").strip()
    mark = f"-{cluster[:8]}" if re.fullmatch(r"[\w-]{8,64}", cluster, re.ASCII) else ""
    return f"{'__Host-' if IS_HTTPS else ''}{kind}{mark}"


SESSION_COOKIE_NAME = cookie_name("sessionid")
CSRF_COOKIE_NAME = cookie_name("csrftoken")
CSRF_FAILURE_VIEW = "console.pages.errors.csrf_failed"
X_FRAME_OPTIONS = "DENY"

STATIC_URL = "/static/"
# Static files are served from the checkout, so no start has to collect them.
WHITENOISE_USE_FINDERS = True
# No other site needs them.
WHITENOISE_ALLOW_ALL_ORIGINS = False

REST_FRAMEWORK = {
    # The interfaces support Accept, but not `?format=`.
    "URL_FORMAT_OVERRIDE": None,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
# Format numbers on pages as in 1,284 partitions.
USE_THOUSAND_SEPARATOR = True
# Every process sets up its own structured log; Django logs through the standard one.
LOGGING_CONFIG = None
