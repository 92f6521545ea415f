"""Defines the keys of the HTTP sink, with the names of Aiven's and Confluent's sinks."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from connectors.plugins.http import addresses
from connectors.plugins.http.addresses import Address
from connectors.sdk.checks import in_range, one_of_ignoring_case
from connectors.sdk.configs import Definition, Importance, Key, Kind
from connectors.sdk.errors import ConfigError
from connectors.sdk.exchanges import trust
from connectors.sdk.fixed_keys import fixed_key
from connectors.sdk.secret_parts import of_pairs

URL: Final = "http.url"
OTHER_URL: Final = "http.api.url"
AUTHORIZATION: Final = "http.authorization.type"
OTHER_AUTHORIZATION: Final = "auth.type"
STATIC: Final = "http.headers.authorization"
HEADERS: Final = "http.headers.additional"
OTHER_HEADERS: Final = "headers"
SEPARATOR: Final = "header.separator"
USER: Final = "connection.user"
PASSWORD: Final = "connection.password"  # noqa: S105 - the name of a key
CERTIFICATES: Final = "http.ssl.certificates"
# A slice takes 30 s; slower servers should answer first and work afterwards.
MAX_TIMEOUT_S: Final = 30
# Longer lists are unreadable.
MAX_HEADERS: Final = 100
# The default batch size of Aiven.
BATCH_SIZE: Final = 500
# Set from the request itself, or from its target.
OWN_HEADERS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "authorization", "te", "upgrade"}
)
ESCAPES: Final[Mapping[str, str]] = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}


def _key(name: str, kind: Kind, doc: str, group: str, default: Any = None, **more: Any) -> Key:
    importance = more.pop("importance", Importance.MEDIUM)
    return Key(
        name=name, kind=kind, doc=doc, group=group, default=default, importance=importance, **more
    )


def _check_url(value: Any) -> str | None:
    if not value:
        return None
    try:
        addresses.parse(value)
    except ConfigError as error:
        return str(error)
    return None


def _targets(value: str | None, _values: Mapping[str, Any]) -> list[tuple[str, int]]:
    if not value:
        return []
    origin = addresses.parse(value).origin
    return [(origin.host, origin.port)]


def _check_headers(value: Any) -> str | None:
    if not isinstance(value, list):
        return None
    try:
        parse_headers(value)
    except ConfigError as error:
        return str(error)
    return None


def _check_certificates(value: Any) -> str | None:
    try:
        trust(value or "")
    except ConfigError as error:
        return str(error)
    return None


DEFINITION: Final = Definition(
    (
        _key(
            URL,
            Kind.STRING,
            "The address of requests, such as https://host/path. ${topic}, ${key}, ${partition} "
            "and ${offset} may be used in path and query.",
            "Server",
            check=_check_url,
            targets=_targets,
            importance=Importance.HIGH,
        ),
        _key(
            OTHER_URL,
            Kind.STRING,
            f"The same as {URL}.",
            "Server",
            check=_check_url,
            targets=_targets,
        ),
        _key(
            "request.method",
            Kind.STRING,
            "POST, PUT or PATCH.",
            "Server",
            "POST",
            check=one_of_ignoring_case("POST", "PUT", "PATCH"),
            importance=Importance.HIGH,
        ),
        _key(
            "http.timeout",
            Kind.INT,
            "The timeout of a request in seconds.",
            "Server",
            10,
            check=in_range(1, MAX_TIMEOUT_S),
            importance=Importance.LOW,
            unit="s",
        ),
        _key(
            CERTIFICATES,
            Kind.STRING,
            "Certificates (PEM) of those who vouch for the server, instead of the machine's own.",
            "Server",
            "",
            check=_check_certificates,
            importance=Importance.LOW,
        ),
        _key(
            AUTHORIZATION,
            Kind.STRING,
            f"The authentication of requests: none; static, by {STATIC}; or basic, by {USER} and "
            f"{PASSWORD}.",
            "Access",
            "none",
            check=one_of_ignoring_case("none", "static", "basic"),
            dependents=(STATIC, USER, PASSWORD),
            importance=Importance.HIGH,
        ),
        _key(
            OTHER_AUTHORIZATION,
            Kind.STRING,
            f"The same as {AUTHORIZATION}.",
            "Access",
            "none",
            check=one_of_ignoring_case("none", "basic"),
            importance=Importance.LOW,
        ),
        _key(STATIC, Kind.PASSWORD, "The header Authorization, as it is sent.", "Access"),
        _key(USER, Kind.STRING, "The user's name.", "Access", ""),
        _key(PASSWORD, Kind.PASSWORD, "The user's password.", "Access"),
        _key(
            "http.headers.content.type",
            Kind.STRING,
            "The header Content-Type; it follows from the body unless it is given.",
            "Request",
        ),
        _key(
            HEADERS,
            Kind.LIST,
            "Further headers, as name:value.",
            "Request",
            [],
            check=_check_headers,
            secret_parts=lambda text, _: of_pairs(text, ","),
            importance=Importance.LOW,
        ),
        _key(
            OTHER_HEADERS,
            Kind.STRING,
            "Further headers as name:value, parted by header.separator.",
            "Request",
            "",
            secret_parts=lambda text, config: of_pairs(text, config.get(SEPARATOR) or "|"),
            importance=Importance.LOW,
        ),
        _key(
            SEPARATOR,
            Kind.STRING,
            f"The separator between those of `{OTHER_HEADERS}`.",
            "Request",
            "|",
            importance=Importance.LOW,
        ),
        _key(
            "request.body.format",
            Kind.STRING,
            "The format of a value: string, which leaves texts and bytes as they are and sends "
            "all else as JSON; or json, which sends texts as JSON too.",
            "Request",
            "string",
            check=one_of_ignoring_case("string", "json"),
        ),
        _key(
            "behavior.on.null.values",
            Kind.STRING,
            "The handling of records without a value: skip them (ignore), or fail.",
            "Request",
            "ignore",
            check=one_of_ignoring_case("ignore", "fail"),
        ),
        _key(
            "batching.enabled",
            Kind.BOOLEAN,
            "Whether a request carries several records; it does where batch.max.size says so, "
            "unless this is given.",
            "Batches",
        ),
        _key(
            "batch.max.size",
            Kind.INT,
            f"The maximum number of records in a request. Default: 1, or {BATCH_SIZE} with "
            "batching.enabled.",
            "Batches",
            check=lambda value: None if value is None else in_range(1, 1_000_000)(value),
        ),
        _key(
            "batch.json.as.array",
            Kind.BOOLEAN,
            "Whether a batch is an array of JSON; lines unless prefix, suffix and separator are "
            "given.",
            "Batches",
            default=False,
        ),
        _key("batch.prefix", Kind.STRING, "The text before the first record.", "Batches"),
        _key("batch.suffix", Kind.STRING, "The text after the last record.", "Batches"),
        _key("batch.separator", Kind.STRING, "The text between records.", "Batches"),
        _key(
            "max.retries",
            Kind.INT,
            "The number of retries of a request before the task fails; -1 for no end.",
            "Errors",
            -1,
            check=in_range(-1),
        ),
        _key(
            "retry.backoff.ms",
            Kind.INT,
            "The wait before a request is repeated, where the server asks for none; growing waits "
            "unless it is given.",
            "Errors",
            check=lambda value: None if value is None else in_range(0, 86_400_000)(value),
        ),
        fixed_key("behavior.on.error", Kind.STRING, "fail", "errors.tolerance says it"),
        fixed_key("batch.buffering.enabled", Kind.BOOLEAN, False, "records go when they come"),
        fixed_key("http.proxy.port", Kind.INT, 0, "connections go to the server itself"),
        fixed_key("http.ssl.trust.all.certs", Kind.BOOLEAN, False, f"give {CERTIFICATES}"),
    )
)

# Keys of Java's sinks that are not supported, with the reason.
REFUSED: Final[Mapping[str, str]] = {
    "kafka.retry.backoff.ms": "retry.backoff.ms says it",
    "retry.on.status.codes": "408, 425, 429 and 5xx are repeated",
    "batch.key.pattern": "a batch goes to one address",
    "regex.patterns": "transforms change records",
    "regex.replacements": "transforms change records",
    "http.proxy.host": "connections go to the server itself",
    "https.ssl.truststore.location": f"give {CERTIFICATES}",
    "https.ssl.keystore.location": "clients show no certificate",
    "oauth2.access.token.url": "tokens are not fetched",
    "reporter.bootstrap.servers": "answers go to no topic",
    "reporter.result.topic.name": "answers go to no topic",
    "reporter.error.topic.name": "errors.deadletterqueue.topic.name does",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """The layout of records in a request. `size` 1 sends a record as it is."""

    size: int = 1
    is_on: bool = False
    prefix: bytes = b""
    separator: bytes = b"\n"
    suffix: bytes = b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a task."""

    address: Address
    method: str
    headers: Mapping[str, str] = field(repr=False)
    batching: Batching
    is_json: bool
    is_null_left_out: bool
    timeout_s: int
    max_retries: int
    backoff_s: float | None
    certificates: str = field(repr=False)


def problems(parsed: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the keys that conflict with others, each with the problem."""
    wrong = []
    if not parsed.get(URL) and not parsed.get(OTHER_URL):
        wrong.append((URL, f'Missing required configuration "{URL}" which has no default value.'))
    if parsed.get(URL) and parsed.get(OTHER_URL):
        wrong.append(
            (OTHER_URL, f"It is an alias of {URL}, which is given too: remove one of them")
        )
    kind = _authorization(parsed)
    if kind == "static" and not parsed.get(STATIC):
        wrong.append((STATIC, f"{AUTHORIZATION}=static needs it"))
    if kind == "basic" and not (parsed.get(USER) and parsed.get(PASSWORD)):
        wrong.append((USER, f"{AUTHORIZATION}=basic needs {USER} and {PASSWORD}"))
    try:
        _other_headers(parsed)
    except ConfigError as error:
        wrong.append((OTHER_HEADERS, str(error)))
    return wrong


def settings(parsed: Mapping[str, Any]) -> Settings:
    batching = _batching(parsed)
    is_json = parsed["request.body.format"].lower() == "json"
    given = [*_other_headers(parsed).items(), *parse_headers(parsed[HEADERS]).items()]
    headers = {
        "content-type": parsed["http.headers.content.type"]
        or _content_type(parsed, batching, is_json=is_json),
        "user-agent": "samsa",
        **dict(given),
    }
    if authorization := _authorization_header(parsed):
        headers["authorization"] = authorization
    backoff = parsed["retry.backoff.ms"]
    return Settings(
        address=addresses.parse(parsed[URL] or parsed[OTHER_URL]),
        method=parsed["request.method"].upper(),
        headers=headers,
        batching=batching,
        is_json=is_json,
        is_null_left_out=parsed["behavior.on.null.values"].lower() == "ignore",
        timeout_s=parsed["http.timeout"],
        max_retries=parsed["max.retries"],
        backoff_s=None if backoff is None else backoff / 1000,
        certificates=parsed[CERTIFICATES] or "",
    )


def parse_headers(lines: list[str]) -> dict[str, str]:
    """Parse headers, by name in lower case; ConfigError names an invalid line."""
    headers: dict[str, str] = {}
    if len(lines) > MAX_HEADERS:
        raise ConfigError(f"There are {len(lines)} headers, at most {MAX_HEADERS} are sent")
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        # Omit the value: it may be a secret.
        if not colon or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise ConfigError(f"{name[:100]!r} is not a header name; write name:value")
        if name in OWN_HEADERS:
            raise ConfigError(f"The header {name} is set by the sink; see {AUTHORIZATION}")
        if name in headers:
            raise ConfigError(f"The header {name} is there twice")
        if not value.isprintable() or not value.isascii():
            raise ConfigError(f"The header {name} has characters that no header may have")
        headers[name] = value.strip()
    return headers


def _other_headers(parsed: Mapping[str, Any]) -> dict[str, str]:
    text = parsed.get(OTHER_HEADERS) or ""
    return parse_headers(text.split(parsed.get(SEPARATOR) or "|")) if text else {}


def _authorization(parsed: Mapping[str, Any]) -> str:
    own = str(parsed.get(AUTHORIZATION) or "none").lower()
    return own if own != "none" else str(parsed.get(OTHER_AUTHORIZATION) or "none").lower()


def _authorization_header(parsed: Mapping[str, Any]) -> str | None:
    match _authorization(parsed):
        case "static":
            return str(parsed[STATIC].reveal())
        case "basic":
            pair = f"{parsed[USER]}:{parsed[PASSWORD].reveal()}".encode()
            return f"Basic {base64.b64encode(pair).decode('ascii')}"
    return None


def _batching(parsed: Mapping[str, Any]) -> Batching:
    is_on, size = parsed["batching.enabled"], parsed["batch.max.size"]
    if is_on is False or (is_on is None and (size or 1) == 1):
        return Batching()
    is_array = parsed["batch.json.as.array"]
    default = ("[", ",", "]") if is_array else ("", "\n", "\n")
    names = ("batch.prefix", "batch.separator", "batch.suffix")
    prefix, separator, suffix = (
        _unescaped(parsed[name] if parsed[name] is not None else other).encode()
        for name, other in zip(names, default, strict=True)
    )
    return Batching(
        size=size or BATCH_SIZE, is_on=True, prefix=prefix, separator=separator, suffix=suffix
    )


def _unescaped(text: str) -> str:
    for written, meant in ESCAPES.items():
        text = text.replace(written, meant)
    return text


def _content_type(parsed: Mapping[str, Any], batching: Batching, *, is_json: bool) -> str:
    if batching.is_on and parsed["batch.json.as.array"]:
        return "application/json"
    if not is_json:
        return "text/plain; charset=utf-8"
    return "application/x-ndjson" if batching.is_on else "application/json"
