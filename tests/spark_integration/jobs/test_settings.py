"""The settings that a session of Samsa passes to Spark."""

from pathlib import Path

import pytest

from spark_integration.jobs.errors import SparkRefused
from spark_integration.jobs.folders import SessionFolder
from spark_integration.jobs.settings import (
    driver_settings,
    is_secret,
    logging_of,
    memory_settings,
    merged,
    wants_ui,
)
from spark_integration.jobs.targets import parse_target

SHARED = "shared"


def settings_of(folder: Path, text: str, *, token: str = "") -> dict[str, str]:
    session = SessionFolder(folder)
    target, log = parse_target(text, token=token), folder / "log4j2.properties"
    found = driver_settings(target, session, log, cores=2)
    session.remove()
    return found


def test_a_local_spark_listens_on_loopback_only_and_asks_for_a_secret(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "local[2]")

    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.ui.enabled"] == "false"


def test_a_cluster_elsewhere_reaches_the_driver_and_shares_its_secret(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "spark://10.0.0.7:7077", token=SHARED)

    assert "spark.driver.bindAddress" not in settings
    assert settings["spark.authenticate.secret"] == SHARED


def test_spark_writes_below_the_home_only(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "local")

    assert settings["spark.local.dir"].startswith(str(tmp_path))
    assert settings["spark.sql.warehouse.dir"].startswith(tmp_path.as_uri())
    assert f"-Djava.io.tmpdir={tmp_path}" in settings["spark.driver.extraJavaOptions"]
    assert f"fileName = {tmp_path}/x.log" in logging_of(tmp_path / "x.log")


def test_the_memory_of_java_is_as_the_user_says_and_nothing_else_than_an_amount() -> None:
    assert memory_settings({}) == {}
    assert memory_settings({"SAMSA_SPARK_MEMORY": "4g"}) == {"spark.driver.memory": "4g"}

    for text in ("4", "4 GB", "-1g", "1g -XX:+Evil"):
        with pytest.raises(SparkRefused, match="give it as in 4g or 2048m"):
            memory_settings({"SAMSA_SPARK_MEMORY": text})


def test_secrets_are_known_by_their_names() -> None:
    assert is_secret("spark.authenticate.secret")
    assert is_secret("spark.hadoop.fs.s3a.access.key")
    assert not is_secret("spark.sql.shuffle.partitions")


def test_a_later_setting_overrules() -> None:
    assert merged({"a": "1", "b": "1"}, {"a": "2"}) == {"a": "2", "b": "1"}


def test_pages_of_spark_are_off_unless_they_are_asked_for(tmp_path: Path) -> None:
    session = SessionFolder(tmp_path)
    shown = driver_settings(parse_target("local"), session, tmp_path / "x", cores=2, has_ui=True)
    session.remove()

    assert (shown["spark.ui.enabled"], shown["spark.ui.killEnabled"]) == ("true", "false")
    assert not wants_ui({})
    assert not wants_ui({"SAMSA_SPARK_UI": "false"})
    assert wants_ui({"SAMSA_SPARK_UI": "True"})
