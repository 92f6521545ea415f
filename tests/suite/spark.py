"""The one Spark that all tests of a worker share: a session, made when the first of them asks."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_integration.jobs.session import close_session, session
from tests.suite.maven import spark_kafka_jars

# For a JVM that lives for a minute beside other work on two cores: it compiles each method once and
# at once, and collects garbage in one thread.
SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A SparkSession; leave its settings as they are, and stop every query that you start."""
    home: Path = tmp_path_factory.mktemp("spark")
    # Two cores whatever the machine has, and little memory: others run beside it.
    environment = {"SAMSA_SPARK": "local[2]"}
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.defaultJavaOptions": SHORT_LIVED_JAVA,
    }
    if spark_kafka_jars().is_here():
        # Spark's own `format("kafka")`, which tests compare with; no other test sees it.
        settings["spark.jars"] = spark_kafka_paths()
    # pytest adds its handler to loggers that pass nothing on, as two of Spark's do; Spark's would
    # give it a form of their own, for all tests behind this one.
    with pytest.MonkeyPatch.context() as patch:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415 - an extra

        patch.setattr(PySparkLogger, "addHandler", logging.Logger.addHandler)
        yield from running(home, environment, settings)


def spark_kafka_paths() -> str:
    return ",".join(str(path) for path in sorted(spark_kafka_jars().folder.glob("*.jar")))


def running(home: Path, environment: dict[str, str], settings: dict[str, str]) -> Iterator[Any]:
    made = session(home, environment=environment, settings=settings)
    yield made
    left = [query.name or query.id for query in made.streams.active]
    close_session()
    assert left == [], "queries that their tests did not stop"
    assert list(home.glob("spark/session-*")) == []
