"""A newcomer installs Spark by a button and has it write Parquet files, all from the console."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.home import NEW_PASSWORD
from tests.browser.spark_walk import STEPS, Builder
from tests.browser.steps import take
from tests.browser.visitor import visiting
from tests.browser.walk import change_the_password, log_in
from tests.cluster import ROOT, Cluster, running_cluster
from tests.extras import requires
from tests.suite.spark import SHORT_LIVED_JAVA

pytestmark = [requires("chromium", "axe", "java", "spark"), pytest.mark.slow]

# What the product is made of; it runs without its tests and its docs.
LEFT_OUT = ("tests/", "docs/", "bench/")
PRODUCT = ("brokers", "cli", "connectors", "console", "gateway", "spark_integration")
JAVA = {"JDK_JAVA_OPTIONS": SHORT_LIVED_JAVA}
# Two installations from the installer's cache take seconds; without one, Spark is built.
INSTALL_SECONDS = 240
# A session of Spark and its first batch take 20 s on a calm machine.
PATIENCE_S = 180.0


@pytest.fixture
def environment() -> Mapping[str, str]:
    """Packages come from the cache of the installer, which has all that these tests run with.

    Where it has not, uv refuses at once, and Samsa goes on with pip.
    """
    programs = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"
    return {"UV_OFFLINE": "1", "PATH": programs, "SAMSA_SPARK": "local[1]", **JAVA}


@pytest.fixture
def checkout(environment: Mapping[str, str]) -> Iterator[Path]:
    """A checkout like this one whose own `.venv` has no Spark."""
    # On the disk, where packages are links to the installer's cache: temporary folders of tests are
    # in memory. What lies beside the packages of this checkout is found by none of its tools.
    with tempfile.TemporaryDirectory(dir=ROOT / ".venv", prefix="checkout-") as folder:
        yield make_checkout(Path(folder), environment)


def make_checkout(folder: Path, environment: Mapping[str, str]) -> Path:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and not name.startswith(LEFT_OUT) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    made = subprocess.run(
        [folder / "samsa", "extras", "list"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=True,
    )
    assert "spark    missing" in made.stdout
    return folder


def link_bytecode(folder: Path) -> Path:
    """Return a folder with what is compiled already, so that no process of a home compiles it."""
    made = folder / "bytecode"
    if sys.pycache_prefix is None:
        return made
    for part in (*PRODUCT, ".venv/lib"):
        compiled = Path(f"{sys.pycache_prefix}{ROOT}", part)
        if compiled.is_dir():
            # Other workers compile at the same time: what they have not finished is left out.
            unfinished = shutil.ignore_patterns("*.pyc.*")
            target = f"{made}{folder}/{part}"
            shutil.copytree(compiled, target, copy_function=os.link, ignore=unfinished)
    return made


@pytest.fixture
def home(tmp_path: Path, checkout: Path, environment: Mapping[str, str]) -> Iterator[Cluster]:
    started = running_cluster(
        tmp_path / "home",
        has_web=True,
        gateway_workers=1,
        environment={**environment, "PYTHONPYCACHEPREFIX": str(link_bytecode(checkout))},
        checkout=checkout,
    )
    with started as running:
        yield running


def test_a_newcomer_installs_spark_and_writes_a_topic_as_parquet_files(
    browser: Browser, home: Cluster, tmp_path: Path
) -> None:
    password = (home.folder / "secrets" / "admin-password").read_text("ascii").strip()
    with visiting(browser, home.console.rstrip("/")) as visitor:
        builder = Builder(
            visitor=visitor,
            password=password,
            bootstrap=home.bootstrap,
            files=home.folder / "files",
            wait=lambda fact, what: home.wait(fact, what, seconds=PATIENCE_S),
        )

        shown = take((log_in, change_the_password, *STEPS), builder, visitor, tmp_path)

    told = "".join(path.read_text(errors="replace") for path in home.home.logs.glob("*.log"))
    assert "requirements-spark.txt" in told
    for secret in (NEW_PASSWORD, password):
        assert secret not in shown
        assert secret not in told
