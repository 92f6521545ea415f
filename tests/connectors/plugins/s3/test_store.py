"""What a store answers, and who must act; with answers that no store of the tests gives."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from connectors.plugins.s3.signing import Credentials
from connectors.plugins.s3.store import Bucket, Store
from connectors.sdk import outgoing
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.exchanges import split
from tests.fakes.web_server import WebServer

ERROR = b"<Error><Code>%s</Code><Message>%s</Message></Error>"


@pytest.fixture(autouse=True)
def loopback_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(outgoing.SETTING, "127.0.0.1,*.127.0.0.1")


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer() as running:
        yield running


@pytest.fixture
def store(server: WebServer) -> Iterator[Store]:
    origin, _ = split(server.url)
    made = Store(
        Bucket(
            origin=origin,
            name="lake",
            region="eu-west-1",
            is_path_style=True,
            credentials=Credentials(key_id="AKIDTEST", secret=str(datetime.now(UTC))),
            headers={"x-amz-acl": "private"},
        )
    )
    yield made
    made.close()


def test_an_object_is_written_where_there_is_none(server: WebServer, store: Store) -> None:
    assert store.put("a/b+c.json", b"text", {"samsa-end": "5"})
    server.answer(412)
    assert not store.put("a/b+c.json", b"text", {})

    asked = server.requests[0]
    assert (asked.method, asked.target, asked.body) == ("PUT", "/lake/a/b%2Bc.json", b"text")
    assert asked.headers["if-none-match"] == "*"
    assert asked.headers["x-amz-meta-samsa-end"] == "5"
    assert asked.headers["x-amz-acl"] == "private"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (500, b"InternalError"),
        (503, b"SlowDown"),
        (409, b"ConditionalRequestConflict"),
        (400, b"RequestTimeout"),
        (404, b"NoSuchUpload"),
    ],
)
def test_what_may_get_better_is_tried_again(
    server: WebServer, store: Store, status: int, code: bytes
) -> None:
    server.answer(status, ERROR % (code, b"please"))

    with pytest.raises(RetriableError):
        store.put_part("key", "upload", 1, b"part")


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, b"InvalidAccessKeyId", "aws.access.key.id"),
        (404, b"NoSuchBucket", "s3.bucket.name"),
        (301, b"PermanentRedirect", "s3.region"),
        (400, b"InvalidRequest", "InvalidRequest no &lt;such thing>"),
    ],
)
def test_what_will_not_get_better_says_what_to_look_at(
    server: WebServer, store: Store, status: int, code: bytes, said: str
) -> None:
    server.answer(status, ERROR % (code, b"no &amp;lt;such thing&gt;"))

    with pytest.raises(ConnectorError, match=said) as failed:
        store.put("key", b"text", {})

    assert not isinstance(failed.value, RetriableError)


def test_what_was_signed_is_not_repeated_from_an_answer(server: WebServer, store: Store) -> None:
    body = ERROR % (b"SignatureDoesNotMatch", b"wrong") + b"<StringToSign>geheim</StringToSign>"
    server.answer(403, body)

    with pytest.raises(ConnectorError) as failed:
        store.put("key", b"text", {})

    assert "geheim" not in str(failed.value)


def test_an_upload_that_fails_after_its_200_is_no_upload(server: WebServer, store: Store) -> None:
    server.answer(200, ERROR % (b"InternalError", b"later"))

    with pytest.raises(RetriableError, match="InternalError"):
        store.complete("key", "upload", ["tag"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<x/>",
        b"\xff" * 1000,
        b"<UploadId>" * 10_000,
        b"<!DOCTYPE x [<!ENTITY a 'b'>]><UploadId>&a;</UploadI>",
    ],
)
def test_an_answer_that_is_none_begins_no_upload(
    server: WebServer, store: Store, body: bytes
) -> None:
    server.answer(200, body)

    with pytest.raises(RetriableError, match="gave no id"):
        store.begin("key", {})


def test_uploads_are_listed_by_key_and_id(server: WebServer, store: Store) -> None:
    one = b"<Upload><Key>a&amp;b</Key><UploadId>1</UploadId></Upload>"
    server.answer(200, b"<List><Prefix>x</Prefix>" + one + b"<Upload><Key>c</Key></Upload></List>")

    assert store.begun("a") == [("a&b", "1")]
    assert server.requests[0].target == "/lake/?max-uploads=1000&prefix=a&uploads="


def test_a_list_without_an_end_takes_no_time(server: WebServer, store: Store) -> None:
    server.answer(200, b"<Upload>" * 1_000_000)

    assert store.begun("a") == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.put("key", b"text", {}),
        lambda store: store.find("key"),
        lambda store: store.begin("key", {}),
        lambda store: store.complete("key", "upload", []),
        lambda store: store.abort("key", "upload"),
        lambda store: store.begun("prefix"),
    ],
)
def test_a_store_that_is_away_is_tried_again(
    server: WebServer, store: Store, ask: Callable[[Store], object]
) -> None:
    server.answer(503)

    with pytest.raises(RetriableError):
        ask(store)


def test_what_is_not_there_is_not_found(server: WebServer, store: Store) -> None:
    server.answer(404)
    server.answer(200, b"", {"X-Amz-Meta-Samsa-End": "7", "Other": "x"})

    assert store.find("key") is None
    assert store.find("key") == {"samsa-end": "7"}
