"""What a server is sent, and what becomes of records by its answers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from connectors.plugins.http.connector import HttpSink
from connectors.sdk import outgoing
from connectors.sdk.checks import check, parse
from connectors.sdk.configs import Required
from connectors.sdk.errors import ConfigError, ConnectorError, RecordError, RetriableError
from connectors.sdk.records import SinkRecord, TopicPartition
from connectors.sdk.schemas import INT64, Field, Schema, Struct, Type
from connectors.sdk.testing import MemorySinkContext, run_sink, sink_record
from tests.fakes.web_server import WebServer

ORDERS = TopicPartition(topic="orders", partition=0)


@pytest.fixture(autouse=True)
def loopback_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(outgoing.SETTING, "127.0.0.1")


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer() as running:
        yield running


def parsed(config: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in HttpSink.definition():
        assert not isinstance(key.default, Required)
        found[key.name] = parse(key, config[key.name]) if key.name in config else key.default
    return found


def errors(config: Mapping[str, str]) -> dict[str, str]:
    found = parsed(config)
    wrong = {key.name: check(key, found[key.name]) for key in HttpSink.definition()}
    wrong |= {value.name: value.errors[0] for value in HttpSink().validate(found)}
    wrong |= {name: HttpSink.refused[name] for name in config if name in HttpSink.refused}
    return {name: text for name, text in wrong.items() if text is not None}


def put(
    server: WebServer,
    batches: Sequence[list[SinkRecord]],
    context: MemorySinkContext | None = None,
    /,
    **config: str,
) -> Any:
    made = context or MemorySinkContext()
    told = {name.replace("_", "."): value for name, value in config.items()}
    try:
        return run_sink(HttpSink(), parsed({"http.url": f"{server.url}/in", **told}), made, batches)
    finally:
        made.close()


def records(count: int, *, start: int = 0) -> list[SinkRecord]:
    return [sink_record({"n": n}, key=f"k{n}", offset=n) for n in range(start, start + count)]


def bodies(server: WebServer) -> list[bytes]:
    return [asked.body for asked in server.requests]


def test_each_record_is_a_request_in_the_order_of_the_topic(server: WebServer) -> None:
    durable = put(server, [records(3)], request_body_format="json")

    assert bodies(server) == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
    assert {asked.headers["content-type"] for asked in server.requests} == {"application/json"}
    assert (server.connections, durable) == (1, None)


@pytest.mark.parametrize(
    ("value", "as_string", "as_json"),
    [
        ("text", b"text", b'"text"'),
        (b"\x00\xff", b"\x00\xff", b'"AP8="'),
        ({"a": None}, b'{"a":null}', b'{"a":null}'),
        (5, b"5", b"5"),
    ],
)
def test_a_value_is_sent_as_it_is_or_as_json(
    server: WebServer, value: Any, as_string: bytes, as_json: bytes
) -> None:
    put(server, [[sink_record(value)]])
    put(server, [[sink_record(value)]], request_body_format="json")

    assert bodies(server) == [as_string, as_json]


def test_a_struct_is_an_object(server: WebServer) -> None:
    row = Schema(type=Type.STRUCT, fields=(Field(name="id", schema=INT64),))

    put(server, [[sink_record(Struct(row, {"id": 1}), value_schema=row)]])

    assert bodies(server) == [b'{"id":1}']


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        ({"batch_max_size": "2"}, [b'{"n":0}\n{"n":1}\n', b'{"n":2}\n']),
        (
            {"batch_max_size": "2", "batch_json_as_array": "true"},
            [b'[{"n":0},{"n":1}]', b'[{"n":2}]'],
        ),
        ({"batching_enabled": "true"}, [b'{"n":0}\n{"n":1}\n{"n":2}\n']),
        (
            {"batching_enabled": "false", "batch_max_size": "2"},
            [b'{"n":0}', b'{"n":1}', b'{"n":2}'],
        ),
        (
            {
                "batch_max_size": "3",
                "batch_prefix": "<",
                "batch_separator": r"\t",
                "batch_suffix": ">",
            },
            [b'<{"n":0}\t{"n":1}\t{"n":2}>'],
        ),
    ],
)
def test_batches_are_lines_or_an_array(
    server: WebServer, config: dict[str, str], sent: list[bytes]
) -> None:
    put(server, [records(3)], **config)

    assert bodies(server) == sent


def test_records_of_one_request_have_one_address(server: WebServer) -> None:
    given = [sink_record({"n": n}, key="ab"[n // 2], offset=n) for n in range(4)]

    put(server, [given], http_url=f"{server.url}/${{topic}}/${{key}}", batch_max_size="10")

    assert [asked.target for asked in server.requests] == ["/orders/a", "/orders/b"]


def test_headers_and_authorization_are_sent(server: WebServer) -> None:
    put(
        server,
        [records(1)],
        http_authorization_type="static",
        http_headers_authorization="Bearer geheim",
        http_headers_additional="X-One:1,X-Two: b:c",
        headers="X-Three:3|X-Four:4",
        http_headers_content_type="text/x",
        request_method="put",
    )
    put(
        server,
        [records(1)],
        auth_type="BASIC",
        connection_user="user",
        connection_password="geheim",  # noqa: S106 (of no server)
    )

    first, second = server.requests
    assert first.method == "PUT"
    assert first.headers["authorization"] == "Bearer geheim"
    assert [first.headers[f"x-{n}"] for n in ("one", "two", "three", "four")] == [
        *("1", "b:c", "3", "4"),
    ]
    assert first.headers["content-type"] == "text/x"
    assert second.headers["authorization"] == "Basic dXNlcjpnZWhlaW0="


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_an_answer_that_may_get_better_is_asked_for_again(server: WebServer, status: int) -> None:
    server.answer(status, b"busy", {"Retry-After": "7"})

    with pytest.raises(RetriableError, match=f"answered {status}: busy") as failed:
        put(server, [records(1)])

    assert failed.value.wait_s == 7


@pytest.mark.parametrize(
    ("retry_after", "wait_s"),
    [
        ("0", 0),
        ("999999", 3600),
        ("Thu, 19 Nov 2020 12:00:00 GMT", 0),
        ("Thu, 19 Nov 2099 12:00:00 GMT", 3600),
        ("soon", 2),
        ("-5", 2),
        ("9" * 400, 2),
        ("", 2),
    ],
)
def test_the_wait_is_what_the_server_asks_for_within_an_hour(
    server: WebServer, retry_after: str, wait_s: float
) -> None:
    server.answer(503, b"", {"Retry-After": retry_after})

    with pytest.raises(RetriableError) as failed:
        put(server, [records(1)], retry_backoff_ms="2000")

    assert failed.value.wait_s == wait_s


def test_those_that_arrived_are_done_before_the_others_are_tried_again(server: WebServer) -> None:
    server.answer(200)
    server.answer(503)
    context = MemorySinkContext()

    durable = put(server, [records(3)], context)

    assert durable == {ORDERS: 1}
    assert context.sought == {ORDERS: 1}
    assert len(server.requests) == 2


def test_a_slice_that_is_over_leaves_the_rest_for_the_next(server: WebServer) -> None:
    context = MemorySinkContext(should_yield=True)
    given = [*records(2), *[sink_record({}, partition=1, offset=n) for n in range(2)]]

    durable = put(server, [given], context)

    assert durable == {ORDERS: 1}
    assert context.sought == {ORDERS: 1, TopicPartition(topic="orders", partition=1): 0}


def test_after_so_many_repetitions_the_task_fails(server: WebServer) -> None:
    context = MemorySinkContext()
    config = parsed({"http.url": server.url, "max.retries": "1"})
    task = HttpSink().task()
    task.start(context, config)
    server.answer(500)
    server.answer(500)

    with pytest.raises(RetriableError):
        task.put(records(1))
    with pytest.raises(ConnectorError, match=r"which is max\.retries") as failed:
        task.put(records(1))
    context.close()

    assert not isinstance(failed.value, RetriableError)


def test_repetitions_of_slices_before_count_too(server: WebServer) -> None:
    server.answer(500)

    with pytest.raises(ConnectorError, match=r"which is max\.retries"):
        put(server, [records(1)], MemorySinkContext(retries=3), max_retries="3")


@pytest.mark.parametrize("status", [400, 409, 413, 415, 422])
def test_a_record_that_the_server_refuses_is_the_one_at_fault(
    server: WebServer, status: int
) -> None:
    for answer in (200, status):
        server.answer(answer, b"no such colour")
    context = MemorySinkContext()
    task = HttpSink().task()
    task.start(context, parsed({"http.url": server.url}))
    given = records(4)

    with pytest.raises(RecordError, match="no such colour") as refused:
        task.put(given)
    task.put(given[:1] + given[2:])
    context.close()

    assert refused.value.index == 1
    assert [json.loads(body)["n"] for body in bodies(server)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("status", "config", "said"),
    [
        (400, {"batch_max_size": "5"}, "batch.max.size=1"),
        (401, {}, "authorization"),
        (403, {}, "authorization"),
        (404, {}, "http.url"),
        (302, {}, "redirects are not followed"),
    ],
)
def test_what_no_record_is_to_blame_for_ends_the_task(
    server: WebServer, status: int, config: dict[str, str], said: str
) -> None:
    server.answer(status, b"", {"Location": "http://127.0.0.1:1/"})

    with pytest.raises(ConnectorError, match=said) as failed:
        put(server, [records(2)], **config)

    assert not isinstance(failed.value, (RecordError, RetriableError))


def test_an_address_that_the_record_chose_is_its_fault(server: WebServer) -> None:
    server.answer(404)

    with pytest.raises(RecordError):
        put(server, [records(1)], http_url=f"{server.url}/${{key}}")


def test_a_record_without_a_value_is_left_out_or_fails(server: WebServer) -> None:
    given = [*records(1), sink_record(None, offset=1), *records(1, start=2)]

    put(server, [given])
    with pytest.raises(RecordError) as refused:
        put(server, [given], behavior_on_null_values="fail")

    assert [json.loads(body)["n"] for body in bodies(server)][:2] == [0, 2]
    assert refused.value.index == 1


def test_a_secret_in_the_path_is_not_in_errors(server: WebServer) -> None:
    server.answer(401)

    with pytest.raises(ConnectorError) as failed:
        put(server, [records(1)], http_url=f"{server.url}/hooks/geheim?token=geheim")

    assert "geheim" not in str(failed.value)


def test_a_host_that_is_not_allowed_is_refused(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(outgoing.SETTING)

    with pytest.raises(ConfigError, match="loopback"):
        put(server, [records(1)])

    assert server.connections == 0


def test_published_configs_are_taken_as_they_are() -> None:
    aiven = {
        "http.authorization.type": "none",
        "http.url": "http://httpmockserver:1080",
        "batching.enabled": "true",
        "batch.max.size": "2",
    }
    confluent = {
        "http.api.url": "http://localhost:8080/api/messages",
        "request.method": "PUT",
        "headers": "Content-Language:en|X-Trace:1",
        "auth.type": "NONE",
        "max.retries": "3",
    }

    assert errors(aiven) == {}
    assert errors(confluent) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("http.url", ""),
        ("http.url", "ftp://host"),
        ("http.url", "http://${key}/"),
        ("http.api.url", "http://other/"),
        ("request.method", "DELETE"),
        ("http.timeout", "31"),
        ("http.authorization.type", "oauth2"),
        ("http.headers.authorization", ""),
        ("http.headers.additional", "Host:evil"),
        ("http.headers.additional", "Content-Length:0"),
        ("http.headers.additional", "no colon"),
        ("http.headers.additional", "X-A:1,x-a:2"),
        ("headers", "A b:c"),
        ("http.ssl.trust.all.certs", "true"),
        ("http.ssl.certificates", "no pem"),
        ("http.proxy.host", "proxy"),
        ("regex.patterns", "a"),
        ("behavior.on.error", "ignore"),
        ("reporter.bootstrap.servers", "localhost:9092"),
        ("batch.max.size", "0"),
    ],
)
def test_what_is_not_honoured_is_refused_by_its_name(key: str, value: str) -> None:
    config = {"http.url": "http://host/", key: value}
    if key == "http.headers.authorization":
        config["http.authorization.type"] = "static"

    assert list(errors(config)) == [key]
