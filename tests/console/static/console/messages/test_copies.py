"""A record as a command or as JSON holds all of the record, whatever is in it."""

import json
import subprocess
from base64 import b64decode, b64encode
from tempfile import NamedTemporaryFile
from typing import Any

import pytest

from tests.extras import requires
from tests.node import evaluated

pytestmark = requires("node")

NASTY = b'it\'s $(id) `id`\n\\ "q" \xff'


def copied(function: str, **more: object) -> str:
    record: dict[str, Any] = {
        "topic": "orders",
        "cluster": "c1",
        "bootstrap": "localhost:9092",
        "partition": 3,
        "offset": "9007199254740993",
        "timestampMs": "1700000000000",
        "key": b"k",
        "value": b"v",
        "headers": [],
        **more,
    }
    record["key"], record["value"] = _list(record["key"]), _list(record["value"])
    record["headers"] = [[name, _list(data)] for name, data in record["headers"]]
    expression = (
        f"m.{function}({{...given, key: bytes(given.key), value: bytes(given.value), "
        "headers: given.headers.map(([name, data]) => [name, bytes(data)])})"
    )
    return str(evaluated("messages/copies.js", expression, record))


def _list(data: bytes | None) -> list[int] | None:
    return None if data is None else list(data)


def arguments(command: str) -> tuple[list[bytes], bytes]:
    """Run a command with programs that only tell what they were given: arguments and input."""
    tell = "tell() { printf '%s\\0' \"$@\"; printf '\\0'; cat; }; kcat() { tell \"$@\"; }; "
    tell += 'curl() { tell "$@"; }; '
    # As a file: no argument is as long as a command may be.
    with NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(tell + command)
        script.flush()
        done = subprocess.run(
            ["bash", script.name], capture_output=True, check=True, stdin=subprocess.DEVNULL
        )
    assert done.stderr == b""
    told, _, taken = done.stdout.partition(b"\0\0")
    return told.split(b"\0"), taken


def test_json_keeps_what_is_no_text_as_base64() -> None:
    found = json.loads(copied("asJson", value=NASTY, key=None, headers=[("h", b"\0")]))

    assert found["offset"] == "9007199254740993"
    assert found["timestamp"] == "2023-11-14T22:13:20.000Z"
    assert found["key"] is None
    assert b64decode(found["value"]["base64"]) == NASTY
    assert found["headers"] == [{"name": "h", "value": "\0"}]


def test_kcat_reads_the_record_by_its_place() -> None:
    told, _ = arguments(copied("asKcatRead"))

    assert told == b"-C -b localhost:9092 -t orders -p 3 -o 9007199254740993 -c 1".split()


@pytest.mark.parametrize("value", [NASTY, b"plain", b"\0\n\0", b"a" * 5000, b"\x1e\n\x1f"])
def test_kcat_is_given_the_bytes_of_the_record(value: bytes) -> None:
    headers = [("a b'", b"x=\n$1"), ("n", None)]

    told, taken = arguments(copied("asKcatWrite", key=NASTY, value=value, headers=headers))

    assert taken == value
    assert told[told.index(b"-k") + 1] == NASTY
    given = [told[at + 1] for at, word in enumerate(told) if word == b"-H"]
    assert given == [b"a b'=x=\n$1", b"n"]


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        (b"k", None, b"k\n"),
        (b"k\n", b"", b"k\n\x1e"),
        (None, None, b"\n"),
        (b"a\0", b"v", b"a\0\nv"),
        (b"k" * 150_000, b"v", b"k" * 150_000 + b"\nv"),
    ],
)
def test_a_key_goes_with_the_value_where_kcat_takes_it_no_other_way(
    key: bytes | None, value: bytes | None, wanted: bytes
) -> None:
    told, taken = arguments(copied("asKcatWrite", key=key, value=value))

    assert taken == wanted
    assert (b"-Z" in told, b"-k" in told, b"-K" in told) == (value is None, False, True)


def test_what_kcat_cannot_say_stands_in_a_comment() -> None:
    headers = [("x=y", b""), ("ok", b"\0"), ("\n$(id)", b""), ("long", b"x" * 150_000)]
    command = copied("asKcatWrite", key=b"", value=None, headers=headers)

    first, second = command.split("\n")

    assert first == (
        '# without the header "x=y", the header "ok", the header "long", '
        "the empty key, which becomes null: "
        "kcat cannot say it"
    )
    assert "-H $'\\n$(id)='" in second


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (b'{"id": 9007199254740993}', '{"type": "JSON", "data": {"id": 9007199254740993}}'),
        (b"it's\n$(id)", '{"type": "STRING", "data": "it\'s\\n$(id)"}'),
        (b"123", '{"type": "STRING", "data": "123"}'),
        (b"\xff", f'{{"type": "BINARY", "data": "{b64encode(bytes([255])).decode()}"}}'),
        (None, '{"type": "BINARY", "data": null}'),
    ],
)
def test_curl_sends_the_record_as_the_rest_api_has_it(value: bytes | None, wanted: str) -> None:
    told, _ = arguments(copied("asCurl", value=value, headers=[("h'", b"\0")]))

    assert b"localhost:8082/v3/clusters/c1/topics/orders/records" in told
    assert any(each.startswith(b"Authorization: Bearer ") for each in told)
    body = told[told.index(b"--data-binary") + 1].decode()
    assert f'"value": {wanted}' in body
    found = json.loads(body)
    assert found["partition_id"] == 3
    assert found["headers"] == [{"name": "h'", "value": "AA=="}]
    assert found["timestamp"] == "2023-11-14T22:13:20.000Z"


def test_a_large_record_goes_to_curl_by_its_input() -> None:
    told, taken = arguments(copied("asCurl", value=b"x" * 150_000))

    assert told[-1] == b"@-"
    assert json.loads(taken)["value"]["data"] == "x" * 150_000
