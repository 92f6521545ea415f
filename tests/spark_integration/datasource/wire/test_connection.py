"""Connections with TLS and a password, and what is refused about the other side."""

import ssl
from pathlib import Path

import pytest

from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.errors import Refused
from spark_integration.datasource.wire.settings import parse_settings
from tests.builders.certificates import certificate
from tests.extras import requires
from tests.fakes.guarded_broker import GuardedBroker, guarded

pytestmark = [requires("openssl"), pytest.mark.slow]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("certificate"))


def secured(files: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    return context


def brokers_of(bootstrap: str, **options: str) -> int:
    """Ask for metadata with these settings; return how many brokers there are."""
    named = {name.replace("_", "."): value for name, value in options.items()}
    settings = parse_settings({"bootstrap.servers": bootstrap, **named})
    with Cluster(settings, patience_seconds=0.2) as cluster:
        return len(cluster.metadata([]).brokers) or len(cluster.metadata(None).brokers)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_password_lets_in_over_tls(files: tuple[Path, Path], mechanism: str) -> None:
    broker = GuardedBroker("al=ice", "s3,cret", mechanism, secured(files))
    if mechanism.startswith("SCRAM"):
        broker.user = "alice"
    with guarded(broker):
        found = brokers_of(
            broker.bootstrap,
            security_protocol="SASL_SSL",
            sasl_mechanism=mechanism,
            sasl_username=broker.user,
            sasl_password=broker.password,
            ssl_truststore_type="PEM",
            ssl_truststore_location=str(files[0]),
        )

    assert found == 1
    assert broker.logins == [broker.user]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused_at_once_and_not_shown(mechanism: str) -> None:
    broker = GuardedBroker("alice", "right", mechanism)
    with guarded(broker), pytest.raises(Refused, match="login of 'alice'") as caught:
        brokers_of(
            broker.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_username="alice",
            sasl_password="wrong-one",  # noqa: S106 (it is)
        )

    assert "wrong-one" not in str(caught.value)
    assert broker.logins == []


def test_a_mechanism_that_is_not_offered_names_those_that_are() -> None:
    with (
        guarded(GuardedBroker("alice", "right", "SCRAM-SHA-512")) as broker,
        pytest.raises(Refused, match="does not support PLAIN: it offers SCRAM-SHA-512"),
    ):
        brokers_of(
            broker.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="alice",
            sasl_password="right",  # noqa: S106 (of this test)
        )


def test_untrusted_certificate_is_refused(files: tuple[Path, Path]) -> None:
    with (
        guarded(GuardedBroker("alice", "right", "PLAIN", secured(files))) as broker,
        pytest.raises(Refused, match=r"TLS failed: .*certificate verify failed"),
    ):
        brokers_of(broker.bootstrap, security_protocol="SSL")


def test_a_certificate_of_another_name_is_refused(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with guarded(GuardedBroker("alice", "right", "PLAIN", secured(files))) as broker:
        # It is of 127.0.0.1 and localhost; this is the same place.
        elsewhere = f"127.0.0.2:{broker.port}"
        trusted = {
            "ssl_truststore_type": "PEM",
            "ssl_truststore_certificates": files[0].read_text(encoding="ascii"),
        }
        monkeypatch.setattr("socket.create_connection", to_loopback)
        with pytest.raises(Refused, match=r"127\.0\.0\.2:.*TLS failed: .*mismatch"):
            brokers_of(elsewhere, security_protocol="SSL", **trusted)


def to_loopback(address: tuple[str, int], timeout: float) -> object:
    import socket  # noqa: PLC0415 (the function that is not patched)

    plain = socket.socket()
    plain.settimeout(timeout)
    plain.connect(("127.0.0.1", address[1]))
    return plain


def test_files_that_are_not_there_are_named() -> None:
    with pytest.raises(Refused, match=r"PEM files .*/nowhere"):
        brokers_of(
            "127.0.0.1:1",
            security_protocol="SSL",
            ssl_truststore_type="PEM",
            ssl_truststore_location="/nowhere/ca.pem",
        )
