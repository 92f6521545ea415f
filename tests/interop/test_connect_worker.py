"""A worker of Kafka Connect still gives the answers that ours are compared with."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.connectors.rest.connect_answers import FILE, of_worker
from tests.extras import requires
from tests.oracles.connect_worker import connect_worker
from tests.suite.services import shared_home

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    requires("java", "maven-kafka", "maven-connect"),
]


def test_a_worker_of_kafka_connect_answers_what_was_recorded(
    tmp_path: Path, unique: Callable[[str], str]
) -> None:
    bootstrap = shared_home().bootstrap

    with connect_worker(tmp_path, bootstrap=bootstrap, name=unique("connect")) as url:
        told = json.loads(json.dumps(of_worker(url)))

    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    differing = [(one, other) for one, other in zip(told, recorded, strict=True) if one != other]
    assert differing == []
