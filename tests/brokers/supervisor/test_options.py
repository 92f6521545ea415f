"""Options survive the way to the supervisor, and those that cannot work are refused in words."""

from pathlib import Path

import pytest

from brokers.supervisor.errors import StartRefused
from brokers.supervisor.options import Options, check, endpoint, parse

CERT = Path("/c.pem")
HOME = Path("/srv/samsa")
EVERYWHERE = "0.0.0.0"  # noqa: S104


@pytest.mark.parametrize(
    "options",
    [
        Options(home=HOME),
        Options(home=HOME, brokers=1, port=0, web_port=None, is_detached=True),
        Options(home=HOME, rest_port=8082, can_web_port_move=True, gateway_workers=3),
        Options(home=HOME, rest_port=0, can_rest_port_move=True),
        Options(home=HOME, web_cert=Path("/a b/c.pem"), web_key=Path("/a b/k.pem")),
        Options(home=HOME, web_bind="10.0.0.2"),
        Options(home=HOME, bind="10.0.0.1", advertise="broker.example", is_insecure=True),
        Options(home=HOME, metrics_topic="samsa-metrics"),
        Options(home=HOME, settings=("broker.rack=--a=b", "auto.create.topics.enable=false")),
    ],
)
def test_options_come_through_as_arguments(options: Options) -> None:
    assert parse(options.arguments()) == options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(home=HOME, brokers=0), "--brokers is 0"),
        (Options(home=HOME, brokers=101), "--brokers is 101"),
        (Options(home=HOME, port=65_535), "ports up to 65537"),
        (Options(home=HOME, port=-1), "ports must be between 1 and 65535"),
        (Options(home=HOME, web_port=70_000), "--web-port is 70000"),
        (Options(home=HOME, port=7999), "--web-port 8000 is also the port of broker-2"),
        (Options(home=HOME, rest_port=-1), "--rest-port is -1"),
        (Options(home=HOME, rest_port=9094), "--rest-port 9094 is also the port of broker-3"),
        (Options(home=HOME, rest_port=8000), "--web-port and --rest-port are both 8000"),
        (Options(home=HOME, web_cert=Path("c.pem")), "go together"),
        (Options(home=HOME, gateway_workers=0), "--gateway-workers is 0"),
        (Options(home=HOME, gateway_workers=33), "between 1 and 32"),
        (Options(home=HOME, metrics_topic="my metrics"), "--metrics-topic is 'my metrics'"),
        (Options(home=HOME, metrics_topic="x" * 250), "the name of a topic has 1 to 249"),
        (Options(home=HOME, metrics_topic="__consumer_offsets"), "an internal topic of brokers"),
        (Options(home=HOME, metrics_topic="__cluster_metadata"), "an internal topic of brokers"),
        (Options(home=HOME, bind="10.0.0.1"), "add --insecure"),
        (Options(home=HOME, bind="example.org"), "add --insecure"),
        (Options(home=HOME, bind="10.0.0.1", web_cert=CERT, web_key=CERT), "add --insecure"),
        (Options(home=HOME, web_bind="10.0.0.1"), "add --web-cert and --web-key"),
        (Options(home=HOME, bind=EVERYWHERE, is_insecure=True), "--advertise HOST"),
        (Options(home=HOME, bind="::", is_insecure=True), "--advertise HOST"),
    ],
)
def test_what_cannot_work_is_refused_in_words(options: Options, words: str) -> None:
    with pytest.raises(StartRefused, match=words):
        check(options)


@pytest.mark.parametrize(
    "options",
    [
        Options(home=HOME),
        Options(home=HOME, bind="localhost"),
        Options(home=HOME, bind="127.1.2.3"),
        Options(home=HOME, bind="::1"),
        Options(home=HOME, bind="10.0.0.1", is_insecure=True),
        Options(home=HOME, web_bind="127.0.0.2"),
        Options(home=HOME, web_bind=EVERYWHERE, web_cert=CERT, web_key=CERT),
        Options(home=HOME, web_bind="10.0.0.1", is_insecure=True),
        Options(home=HOME, bind=EVERYWHERE, advertise="here.example", is_insecure=True),
        Options(home=HOME, port=0, web_port=0),
        Options(home=HOME, port=7999, web_port=None),
        Options(home=HOME, port=7999, can_web_port_move=True),
        Options(home=HOME, web_port=0, rest_port=0),
    ],
)
def test_what_can_work_passes(options: Options) -> None:
    check(options)


def test_brokers_take_consecutive_ports_or_any() -> None:
    assert Options(home=HOME, port=9092).ports() == [9092, 9093, 9094]
    assert Options(home=HOME, port=0).ports() == [0, 0, 0]


def test_an_ipv6_address_gets_its_brackets() -> None:
    assert endpoint("::1", 9092) == "[::1]:9092"
    assert endpoint("host", 9092) == "host:9092"


def test_a_trusted_proxy_opens_console_and_gateway_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMSA_TRUSTED_PROXIES", "10.0.0.7")

    check(Options(home=HOME, web_bind="10.0.0.1"))


@pytest.mark.parametrize(
    ("options", "listens", "told"),
    [
        (Options(home=HOME), "127.0.0.1", "127.0.0.1"),
        (Options(home=HOME, web_bind="10.0.0.2"), "10.0.0.2", "10.0.0.2"),
        (Options(home=HOME, web_bind=EVERYWHERE), EVERYWHERE, "127.0.0.1"),
        (Options(home=HOME, web_bind=EVERYWHERE, advertise="a.example"), EVERYWHERE, "a.example"),
        (Options(home=HOME, bind="10.0.0.1"), "10.0.0.1", "10.0.0.1"),
    ],
)
def test_console_and_gateway_may_listen_elsewhere_than_brokers(
    options: Options, listens: str, told: str
) -> None:
    assert (options.door_host, options.advertised_door) == (listens, told)
