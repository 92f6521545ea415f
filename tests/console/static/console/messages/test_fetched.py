"""A record is copied whole or not at all."""

from typing import Any

from tests.extras import requires
from tests.node import evaluated

pytestmark = requires("node")

NULL = {"kind": "null", "text": "", "bytes": 0, "is_cut": False, "schema_id": None, "note": ""}


def copied(*headers: dict[str, Any], **more: object) -> Any:
    """Return the record as copies take it, or the sentence that refuses."""
    frame = {
        "partition": 0,
        "offset": "7",
        "timestamp_ms": "1700000000000",
        "key": NULL,
        "value": NULL,
        "headers": list(headers),
        "more_headers": 0,
        **more,
    }
    place = "{topic: 'orders', cluster: 'c1'}"
    expression = f"m.wholeRecord({place}, 'localhost:9092', given).catch((error) => error.message)"
    return evaluated("messages/fetched.js", expression, frame)


def test_headers_that_are_all_here_are_copied() -> None:
    assert copied({"name": "trace", "value": NULL})["headers"] == [["trace", None]]


def test_a_record_whose_headers_were_not_read_is_not_copied_without_them() -> None:
    said = copied({"name": "(not UTF-8)", "is_unread": True, "value": NULL})

    assert "a header whose name is not UTF-8" in said
    assert "Search for the record" in said
