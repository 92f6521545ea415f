"""docs/howto/use-from-your-spark.md, done: the package serves Sparks that know nothing of Samsa.

The job of the page runs on a Spark of its own in an empty environment, and on a standalone cluster
with two workers. On a Connect server it runs in connectors/plugins/spark/test_sink_server.py, where
one is.
"""

import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.extras import requires
from tests.spark.page import (
    blocks,
    expect_both_jobs_done,
    expect_the_batch_done,
    make_package,
    make_topics,
    places,
    run,
    with_batch,
)
from tests.spark.processes import empty_environment, standalone_cluster, stored_classes
from tests.suite.services import shared_home

pytestmark = [requires("java", "spark"), pytest.mark.slow]

SECRET = "of-this-test"  # noqa: S105 (it is none)
AUTHENTICATED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": SECRET,
    "spark.network.crypto.enabled": "true",
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_package(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def bootstrap() -> str:
    return shared_home().bootstrap


@pytest.fixture
def topics(bootstrap: str, unique: Callable[[str], str]) -> dict[str, str]:
    return make_topics(bootstrap, unique)


def install(python: Path, wheel: Path) -> None:
    """Install a wheel with pip; where there is none, unpack it, which pip would do as well."""
    if importlib.util.find_spec("pip") is not None:
        options = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
        pip: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            *options,
            wheel,
        ]
        subprocess.run(pip, check=True, capture_output=True, text=True)
        return
    (own,) = python.parents[1].glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(own)


def test_a_spark_in_an_empty_environment_finds_the_wheel_by_itself(
    tmp_path: Path, dist: Path, bootstrap: str, topics: dict[str, str]
) -> None:
    python = empty_environment(tmp_path / "empty")
    (wheel,) = dist.glob("*.whl")
    install(python, wheel)

    run(tmp_path / "job", blocks()[0], python=python, places=places(bootstrap, topics))

    # The stream of the page runs on a cluster, below.
    expect_the_batch_done(bootstrap, topics)


def test_a_standalone_cluster_takes_the_zip_from_its_driver(
    tmp_path: Path, dist: Path, bootstrap: str, topics: dict[str, str]
) -> None:
    python = empty_environment(tmp_path / "empty")
    cluster = tmp_path / "cluster"
    classes = {"spark.executor.defaultJavaOptions": stored_classes() or "-Xshare:auto"}

    with standalone_cluster(cluster, python, workers=2, secret=SECRET) as master:
        own = {"spark://127.0.0.1:7077": master, '"dist/': f'"{dist}/'}
        run(
            tmp_path / "job",
            with_batch(blocks()[3]) + blocks()[1],
            python=python,
            places={**places(bootstrap, topics), **own},
            master=master,
            more_settings=AUTHENTICATED | classes,
        )

    expect_both_jobs_done(bootstrap, topics)
    # Both workers ran an executor of it; Spark replaces one that is lost on a busy machine.
    ran = cluster.glob("worker-*/jobs/app-*/*/stdout")
    assert len({path.relative_to(cluster).parts[0] for path in ran}) == 2
