"""What the worker of Spark says of itself before and without a session."""

import json
import os
from pathlib import Path

import pytest

from connectors.plugins.spark import report
from spark_integration.jobs import session


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "HELD", session.Held())


def test_a_worker_without_a_session_tells_which_spark_is_configured(tmp_path: Path) -> None:
    told = report.told({"SAMSA_SPARK": "local[2]", "SAMSA_HOME": str(tmp_path)})

    assert (told["stage"], told["target"], told["failure"]) == ("none", "local[2]", "")
    assert told["logs"] == str(tmp_path / "logs")
    assert told["engine"] is None
    assert json.loads(json.dumps(told)) == told


def test_no_token_is_told() -> None:
    settings = {"SAMSA_SPARK": "sc://10.0.0.7:15002/;token=in-the-url"}
    alone = {"SAMSA_SPARK": "spark://10.0.0.7:7077", "SAMSA_SPARK_TOKEN": "beside-it"}

    assert "in-the-url" not in json.dumps(report.told(settings))
    assert "beside-it" not in json.dumps(report.told(alone))
    assert report.told(settings)["target"] == "sc://10.0.0.7:15002/"


def test_a_spark_that_is_refused_is_told_before_anything_starts() -> None:
    told = report.told({"SAMSA_SPARK": "spark://10.0.0.7:7077"})

    assert told["target"] == ""
    assert "set SAMSA_SPARK_TOKEN" in told["failure"]


def test_memory_is_that_of_a_process_in_steps() -> None:
    used = report.resident_bytes(os.getpid())

    assert used is not None
    assert used > 0
    assert used % report.MEMORY_STEP == 0
    assert report.resident_bytes(0) is None
