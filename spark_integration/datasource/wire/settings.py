"""Connection settings, parsed from options with the names of Kafka's clients.

Pure. Certificates and keys are PEM, in files or as text; Java's key stores are refused by name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_integration.datasource.wire.messages import Address

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# `username="alice" password="a\"b";`, the form of Java's login modules.
JAAS: Final = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
# A security setting outside of this table is refused: if it were ignored, the connection would be
# less secure than configured.
PROTECTION: Final = re.compile(r"(ssl|sasl|security)\.")
KNOWN: Final = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.username",
        "sasl.password",
        "ssl.endpoint.identification.algorithm",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.key.password",
    }
)


class SettingRefused(ValueError):
    """A setting of the connection is missing or wrong; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    mechanism: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    # The CA certificates for the brokers; with neither, those of the machine.
    ca_file: str | None = None
    ca_text: str | None = field(default=None, repr=False)
    # The client certificate with its key, in one file.
    own_file: str | None = None
    own_password: str | None = field(default=None, repr=False)
    has_to_match_name: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a connection, sent to executors together with the password."""

    bootstrap: tuple[Address, ...]
    client_id: str = "samsa-spark"
    tls: Tls | None = None
    login: Login | None = None
    connect_seconds: float = 10.0
    # The timeout of one response: a slower broker counts as dead.
    answer_seconds: float = 30.0


def parse_settings(options: Mapping[str, str]) -> Settings:
    """Parse settings by Kafka's names, without the prefix `kafka.`."""
    unknown = sorted(name for name in options if PROTECTION.match(name) and name not in KNOWN)
    if unknown:
        raise SettingRefused(
            f"kafka.{unknown[0]} is not supported; certificates and keys are PEM: give"
            " kafka.ssl.truststore.type=PEM with kafka.ssl.truststore.location"
        )
    protocol = options.get("security.protocol", "PLAINTEXT").upper()
    require_one_of("security.protocol", protocol, PROTOCOLS)
    return Settings(
        bootstrap=parse_bootstrap(options.get("bootstrap.servers", "")),
        client_id=options.get("client.id", "samsa-spark"),
        tls=parse_tls(options) if protocol.endswith("SSL") else None,
        login=parse_login(options) if protocol.startswith("SASL") else None,
        answer_seconds=parse_milliseconds(options, "request.timeout.ms", 30_000) / 1000,
        connect_seconds=parse_milliseconds(options, "socket.connection.setup.timeout.ms", 10_000)
        / 1000,
    )


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    places = [place.strip() for place in text.split(",") if place.strip()]
    if not places:
        raise SettingRefused("kafka.bootstrap.servers is missing: give host:port,host:port")
    return tuple(parse_address(place) for place in places)


def parse_address(place: str) -> Address:
    host, _, port = place.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise SettingRefused(f"kafka.bootstrap.servers has {place!r}: give host:port")
    return Address(host.strip("[]"), int(port))


def parse_tls(options: Mapping[str, str]) -> Tls:
    for store in ("ssl.truststore.type", "ssl.keystore.type"):
        has_store = f"{store.removesuffix('type')}location" in options
        if has_store and options.get(store, "JKS").upper() != "PEM":
            raise SettingRefused(
                f"kafka.{store} is {options.get(store, 'JKS')}, which only Java reads: set it to"
                " PEM, with a file of that format"
            )
    return Tls(
        ca_file=options.get("ssl.truststore.location"),
        ca_text=options.get("ssl.truststore.certificates"),
        own_file=options.get("ssl.keystore.location"),
        own_password=options.get("ssl.key.password"),
        has_to_match_name=options.get("ssl.endpoint.identification.algorithm", "https") != "",
    )


def parse_login(options: Mapping[str, str]) -> Login:
    mechanism = options.get("sasl.mechanism", "").upper()
    require_one_of("sasl.mechanism", mechanism, MECHANISMS)
    jaas = options.get("sasl.jaas.config", "")
    named = {name: unescaped(value) for name, value in JAAS.findall(jaas)}
    user = options.get("sasl.username", named.get("username", ""))
    password = options.get("sasl.password", named.get("password", ""))
    if not user or not password:
        raise SettingRefused(
            "kafka.sasl.username or kafka.sasl.password is missing: give both, or"
            ' kafka.sasl.jaas.config with username="…" password="…"'
        )
    return Login(mechanism=mechanism, user=user, password=password)


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def parse_milliseconds(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or int(text) == 0:
        raise SettingRefused(f"kafka.{name} is {text!r}: give milliseconds, such as {default}")
    return int(text)


def require_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SettingRefused(f"kafka.{name} is {value!r}: give one of {', '.join(allowed)}")
