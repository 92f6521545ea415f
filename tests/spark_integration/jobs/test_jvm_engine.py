"""What a session leaves in the environment of its process."""

import os

import pytest

from tests.extras import requires

pytestmark = requires("spark")


def test_variables_of_a_program_do_not_stay_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    # It imports pyspark, which is an extra.
    from spark_integration.jobs.jvm_engine import variables  # noqa: PLC0415

    monkeypatch.setenv("JAVA_HOME", "the user's")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)

    with variables({"JAVA_HOME": "a door", "SPARK_LOCAL_IP": "127.0.0.1"}):
        inside = (os.environ["JAVA_HOME"], os.environ["SPARK_LOCAL_IP"])

    assert inside == ("a door", "127.0.0.1")
    assert os.environ["JAVA_HOME"] == "the user's"
    assert "SPARK_LOCAL_IP" not in os.environ
