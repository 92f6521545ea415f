"""What tests of jobs share: a home whose worker has the session of all tests, and a context."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.plugins.spark import engine
from tests.connectors.plugins.spark.jobs import JobContext
from tests.spark.topics import create
from tests.suite.services import shared_home


@pytest.fixture
def home(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # It imports pyspark, which is an extra.
    from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415

    spark.dataSource.register(SamsaDataSource)
    monkeypatch.setenv("SAMSA_HOME", str(tmp_path))
    monkeypatch.setattr(engine, "spark", lambda: spark)
    monkeypatch.setattr(engine, "is_alive", lambda: True)
    return tmp_path


@pytest.fixture
def context(home: Path, unique: Callable[[str], str]) -> JobContext:
    bootstrap = shared_home().bootstrap
    return JobContext(bootstrap=bootstrap, topic=create(bootstrap, unique("lake"), partitions=2))
