"""Options by Kafka's names become settings, and what would protect nobody is refused."""

import pickle

import pytest

from spark_integration.datasource.wire.settings import Login, SettingRefused, Tls, parse_settings

HERE = {"bootstrap.servers": "a:9092, [::1]:9093"}


def test_addresses_are_read_in_their_order() -> None:
    settings = parse_settings(HERE)

    assert [str(place) for place in settings.bootstrap] == ["a:9092", "[::1]:9093"]
    assert settings.tls is None
    assert settings.login is None


def test_a_login_is_read_from_two_options_or_from_javas_form() -> None:
    sasl = HERE | {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
    jaas = r'org.apache.kafka…ScramLoginModule required username="al" password="p\"w";'

    named = parse_settings(sasl | {"sasl.username": "al", "sasl.password": 'p"w'})
    java = parse_settings(sasl | {"sasl.jaas.config": jaas})

    login = Login(mechanism="SCRAM-SHA-512", user="al", password='p"w')  # noqa: S106 (made up)
    assert named.login == java.login == login
    assert named.tls == Tls()
    assert 'p"w' not in repr(named)
    assert pickle.loads(pickle.dumps(named)) == named  # noqa: S301 (our own)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bootstrap.servers": ""}, "bootstrap.servers is missing"),
        ({"bootstrap.servers": "host"}, "has 'host': give host:port"),
        ({"bootstrap.servers": "host:99999"}, "has 'host:99999'"),
        ({"security.protocol": "TLS"}, "'TLS': give one of PLAINTEXT, SSL"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "'GSSAPI': give one of"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.password is missing"),
        ({"ssl.truststore.password": "x"}, "ssl.truststore.password is not supported"),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/a.jks"},
            "truststore.type is JKS",
        ),
        ({"request.timeout.ms": "soon"}, "'soon': give milliseconds"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(options: dict[str, str], said: str) -> None:
    with pytest.raises(SettingRefused, match=said):
        parse_settings(HERE | options)
