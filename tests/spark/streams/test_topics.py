"""Topologies are bound to topics by the options of Spark's own source."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_integration.streams.building import stream
from spark_integration.streams.formats import bytes_format
from tests.extras import requires

pytestmark = [requires("spark"), pytest.mark.slow]

TOPOLOGY = stream("in", bytes_format()).to("out")
SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


class Reader:
    """Options that the DSL passes to Spark for a source or a sink."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def format(self, name: str) -> "Reader":
        self.told["format"] = name
        return self

    def mode(self, name: str) -> "Reader":
        self.told["mode"] = name
        return self

    def options(self, **options: str) -> "Reader":
        self.told |= options
        return self

    def option(self, name: str, value: str) -> "Reader":
        self.told[name] = value
        return self

    def load(self) -> dict[str, str]:
        return self.told

    def save(self) -> None:
        self.told["saved"] = "yes"


class Session:
    """A session whose readers and writers only remember."""

    def __init__(self) -> None:
        self.read = Reader()
        self.readStream = Reader()
        self.write = Reader()


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    from spark_integration.streams import topics  # noqa: PLC0415 (an extra)

    found: dict[str, Any] = {}

    def run_batch(topology: Any, records: Any, write: Any) -> None:
        found.update(topology=topology, records=records)

    def run_stream(session: Any, topology: Any, read: Any, write: Any, **settings: Any) -> None:
        found.update(topology=topology, records=read("place"), **settings)

    monkeypatch.setattr(topics, "run_batch", run_batch)
    monkeypatch.setattr(topics, "run_stream", run_stream)
    return found


def topics_of(session: Any) -> Any:
    from spark_integration.streams.topics import Topics  # noqa: PLC0415 (an extra)

    return Topics(session=session, options=SERVERS)


def test_a_range_is_read_by_its_options(ran: dict[str, Any]) -> None:
    topics_of(Session()).run_batch(TOPOLOGY, ranges={"endingOffsets": "latest"})

    told = {"format": "samsa", **SERVERS, "endingOffsets": "latest", "subscribe": "in"}
    assert ran == {"topology": TOPOLOGY, "records": told}


def test_a_stream_tells_its_source_the_place_of_its_query(ran: dict[str, Any]) -> None:
    start = {"startingOffsets": "earliest"}
    topics_of(Session()).run_stream(TOPOLOGY, checkpoint="here", start=start)

    assert ran["records"] == {
        "format": "samsa",
        "checkpointLocation": "place",
        "subscribe": "in",
        **SERVERS,
        **start,
    }
    assert (ran["checkpoint"], ran["interval"]) == ("here", None)


def test_a_frame_is_appended_to_a_topic() -> None:
    from spark_integration.streams.topics import appender  # noqa: PLC0415 (an extra)

    frame = Session()

    appender("samsa", SERVERS)(frame, "out")

    assert frame.write.told == {
        "format": "samsa",
        "topic": "out",
        "mode": "append",
        "saved": "yes",
        **SERVERS,
    }


def test_passwords_are_not_shown() -> None:
    from spark_integration.streams.topics import Topics  # noqa: PLC0415 (an extra)

    topics = Topics(session=None, options={"kafka.sasl.jaas.config": "secret"})

    assert "secret" not in repr(topics)


def test_what_writes_a_batch_needs_nothing_of_ours_where_it_runs(tmp_path: Path) -> None:
    from pyspark import cloudpickle  # noqa: PLC0415 (an extra)

    from spark_integration.streams.running import batch_writer  # noqa: PLC0415
    from spark_integration.streams.topics import appender  # noqa: PLC0415

    packed = cloudpickle.dumps(batch_writer(appender("samsa", SERVERS), "out"))
    (tmp_path / "packed").write_bytes(packed)
    program = """
import pickle, pathlib
from unittest.mock import MagicMock
frame = MagicMock()
pickle.loads(pathlib.Path("packed").read_bytes())(frame, 7)
frame.write.format.assert_called_once_with("samsa")
"""

    ran = subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, check=False)

    assert ran.returncode == 0
