"""A Connect server that is frozen does not hold what asks it."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from spark_integration.jobs.targets import parse_target
from tests.extras import requires

# It imports pyspark and pandas.
pytestmark = [requires("spark"), pytest.mark.slow]
# Far more than the deadlines of the test, and far less than Spark's own.
PATIENCE_S = 30.0


class Freezing:
    """What answers as a Connect server does, until it is frozen."""

    def __init__(self) -> None:
        from pyspark.sql.connect.proto import base_pb2  # noqa: PLC0415 - an extra

        self._answers: Any = base_pb2
        self.frozen, self.ended = threading.Event(), threading.Event()

    def Config(self, request: Any, _: Any) -> Any:  # noqa: N802 (Spark's name)
        if self.frozen.is_set():
            self.ended.wait(PATIENCE_S)
        return self._answers.ConfigResponse(
            session_id=request.session_id,
            server_side_session_id="one",
            pairs=[self._answers.KeyValue(key="spark.sql.session.timeZone", value="UTC")],
        )

    def AddArtifacts(self, requests: Any, _: Any) -> Any:  # noqa: N802
        ids = {request.session_id for request in requests}
        return self._answers.AddArtifactsResponse(
            session_id=ids.pop(), server_side_session_id="one"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_: self.ended.wait(PATIENCE_S)


@pytest.fixture
def server() -> Iterator[tuple[Freezing, str]]:
    import grpc  # noqa: PLC0415 - an extra
    from pyspark.sql.connect.proto import base_pb2_grpc  # noqa: PLC0415 - an extra

    answers = Freezing()
    with ThreadPoolExecutor(4) as threads:
        served = grpc.server(threads)
        base_pb2_grpc.add_SparkConnectServiceServicer_to_server(answers, served)
        port = served.add_insecure_port("127.0.0.1:0")
        served.start()
        yield answers, f"sc://127.0.0.1:{port}"
        answers.ended.set()
        served.stop(None).wait()


def test_a_server_that_is_frozen_is_not_alive_and_is_given_up_soon(
    server: tuple[Freezing, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_integration.jobs import connect_engine  # noqa: PLC0415 - an extra

    answers, address = server
    monkeypatch.setattr(connect_engine, "RELEASE_S", 0.2)
    engine = connect_engine.ConnectEngine(parse_target(address), {})
    was_alive, since = engine.is_alive(), time.monotonic()
    answers.frozen.set()
    monkeypatch.setattr(connect_engine, "ALIVE_S", 0.2)

    assert (was_alive, engine.is_alive()) == (True, False)
    engine.close()
    assert engine.has_ended()
    assert time.monotonic() - since < PATIENCE_S / 2


def test_a_client_without_deadlines_is_left_as_it_is() -> None:
    from spark_integration.jobs.connect_engine import limit  # noqa: PLC0415 - an extra

    client = object()

    limit(client, config=1.0)

    assert not hasattr(client, "_rpc_deadlines")
