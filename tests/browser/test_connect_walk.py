"""A newcomer copies records into PostgreSQL, all from the console of a fresh home."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser

from tests.browser.connect_walk import PATIENCE_S, STEPS, Copier
from tests.browser.home import NEW_PASSWORD
from tests.browser.steps import take
from tests.browser.visitor import visiting
from tests.browser.walk import change_the_password, log_in
from tests.cluster import Cluster, running_cluster
from tests.extras import requires
from tests.suite.services import shared_postgres

pytestmark = [requires("chromium", "axe", "postgresql"), pytest.mark.slow]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Cluster]:
    # An administrator allows a database that is not at a public address.
    allowed = {"SAMSA_CONNECT_TARGETS": "127.0.0.1"}
    started = running_cluster(
        tmp_path / "home", has_web=True, gateway_workers=1, environment=allowed
    )
    with started as running:
        yield running


@pytest.fixture
def database(unique: Callable[[str], str]) -> Iterator[psycopg.Connection[Any]]:
    server, name = shared_postgres(), unique("shop").lower().replace("-", "_")
    url = server.make_database(name)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
    finally:
        server.drop_database(name)


def test_a_newcomer_copies_records_into_a_database(
    browser: Browser, home: Cluster, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    password = (home.folder / "secrets" / "admin-password").read_text("ascii").strip()
    with visiting(browser, home.console.rstrip("/")) as visitor:
        copier = Copier(
            visitor=visitor,
            password=password,
            bootstrap=home.bootstrap,
            database=database,
            wait=lambda fact, what: home.wait(fact, what, seconds=PATIENCE_S),
        )

        shown = take((log_in, change_the_password, *STEPS), copier, visitor, tmp_path)

    told = "".join(path.read_text(errors="replace") for path in home.home.logs.glob("*.log"))
    assert "rows" in told
    assert NEW_PASSWORD not in shown
    assert NEW_PASSWORD not in told
