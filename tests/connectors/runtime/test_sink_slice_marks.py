"""What a slice of a sink says of a record is marked for readers of its topic."""

from connectors.runtime.record_parts import bare, shown
from connectors.sdk.errors import ConnectorError
from tests.connectors.runtime.test_sink_slice import run
from tests.fakes.slice_plugins import list_sink
from tests.fakes.slice_ports import FakePorts


def test_what_repeats_a_record_is_for_readers_of_its_topic() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"bad", key=b"TOPSECRET")
    logged = {
        "topics": "in",
        "errors.log.enable": "true",
        "errors.log.include.messages": "true",
    }

    end = run(list_sink(), fakes, logged)

    texts = [end.trace, *(text for _, text in fakes.log.lines)]
    read = [shown(text, lambda topics: list(topics) == ["in"]) for text in texts]
    unread = "".join(shown(text, lambda _topics: False) for text in texts)
    assert "this is bad\n" in read[0]
    assert "key=b'TOPSECRET' value=b'bad'" in read[1]
    assert "VALUE_CONVERTER failed for topic in, partition 0, offset 0" in unread
    assert not [word for word in ("this is bad", "TOPSECRET", "b'bad'") if word in unread]


def test_what_an_error_of_any_class_says_may_repeat_a_record() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a")

    def fail(_records: object) -> None:
        row = ValueError("TOPSECRET is not a row")
        raise ConnectorError("the server is away", about_record=": TOPSECRET") from row

    end = run(list_sink(put=fail), fakes)

    unread = shown(end.trace, lambda _topics: False)
    assert unread.startswith("ConnectorError: the server is away[hidden: it may repeat records")
    assert "TOPSECRET" not in unread
    assert bare(end.trace).startswith("ConnectorError: the server is away: TOPSECRET\n")
