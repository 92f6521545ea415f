"""The tables of the controlplane suite, with so few fences that only their order means anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.controlplane import SHARES, writers_table
from tests.extras import requires
from tests.postgres import PostgresServer, postgres_server

pytestmark = pytest.mark.slow

FENCES = 5
# A fence waits for the writers before it, of which there are four at most, and writes: in terms of
# what one write takes in the same run, and twice that for a machine that is busy.
WRITES_PER_FENCE = 10.0


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


def check(name: str, place: dict[str, str]) -> None:
    table = writers_table(name, place, fences=FENCES)

    ((database, writes, shares, _slowest, median_ms, _worst),) = table.rows
    each = [int(share) for share in str(shares).split()]
    assert database == name
    assert isinstance(writes, float)
    assert writes > 0
    assert max(each) <= 2 * SHARES * min(each), shares
    assert float(str(median_ms)) <= WRITES_PER_FENCE * 1000 / writes


def test_writers_of_a_file_share_it_and_let_a_fence_pass(tmp_path: Path) -> None:
    check("SQLite", {"SAMSA_HOME": str(tmp_path)})


@requires("postgresql")
def test_writers_of_a_server_share_it_and_let_a_fence_pass(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.make_database("bench")
    check("PostgreSQL", {"SAMSA_HOME": str(tmp_path), "DATABASE_URL": url})
