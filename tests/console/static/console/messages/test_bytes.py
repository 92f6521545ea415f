"""The bytes behind what is shown: exact, or said to be unknown."""

from base64 import b64encode

from tests.extras import requires
from tests.node import evaluated

pytestmark = requires("node")


def part(kind: str, text: str = "", size: int = 0, **more: object) -> dict[str, object]:
    return {
        "kind": kind,
        "text": text,
        "bytes": size,
        "is_cut": False,
        "schema_id": None,
        "note": "",
        **more,
    }


CASES = [
    (part("null"), None),
    (part("empty"), []),
    (part("text", "ü", 2), [0xC3, 0xBC]),
    (part("json", "{}", 2), [0x7B, 0x7D]),
    (part("hex", "00ff", 2), [0, 255]),
    (part("base64", "AP8=", 2), [0, 255]),
    # Cut, behind a schema's number, decoded from another form, or not the bytes that there are.
    (part("text", "abc", 9, is_cut=True), "unknown"),
    (part("json", "{}", 7, schema_id=42), "unknown"),
    (part("int", "42", 8), "unknown"),
    (part("msgpack", "{}", 1), "unknown"),
    (part("text", "abc", 4), "unknown"),
    (part("text", "\ufffd", 3), "unknown"),
    (part("hex", "0g", 1), "unknown"),
    (part("base64", "?", 1), "unknown"),
    (part("offset_commit", "x", 1), "unknown"),
]


def test_a_part_gives_its_bytes_or_has_to_be_asked_for() -> None:
    expression = (
        "given.map((part) => (m.bytesOf(part) === undefined ? 'unknown' : m.bytesOf(part)))"
    )

    found = evaluated("messages/bytes.js", expression, [given for given, _ in CASES])

    assert found == [wanted for _, wanted in CASES]


def test_base64_is_that_of_others() -> None:
    data = bytes(range(256)) * 100

    found = evaluated("messages/bytes.js", "m.toBase64(bytes(given))", list(data))

    assert found == b64encode(data).decode()


def test_bytes_are_dumped_with_their_places() -> None:
    data = bytes(range(0x18, 0x18 + 20))

    shown = evaluated("messages/hex.js", "m.dump(bytes(given))", list(data))

    assert shown == (
        "00000000  18 19 1a 1b 1c 1d 1e 1f  20 21 22 23 24 25 26 27  |........ !\"#$%&'|\n"
        "00000010  28 29 2a 2b                                       |()*+|"
    )
