"""DATABASE_URL alone moves a home to PostgreSQL, and lets another host join."""

import http.cookiejar
import re
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import pytest

from bench.processes import Process
from brokers.inspection.client import Inspection, InspectionFailed
from brokers.key_files import read_keys
from tests.cluster import Cluster, running_cluster
from tests.extras import requires
from tests.postgres import postgres_server

pytestmark = [pytest.mark.slow, requires("postgresql")]

SECONDS = 30


def test_a_node_joins_by_the_database_and_both_outlive_its_restart(tmp_path: Path) -> None:
    with postgres_server() as server:
        there = {"DATABASE_URL": server.make_database("samsa")}
        with (
            running_cluster(tmp_path / "one", has_web=True, environment=there) as one,
            running_cluster(tmp_path / "two", has_web=True, environment=there) as two,
        ):
            server.restart()
            one.wait_healthy()
            two.wait_healthy()

            ids = [cluster.status()["brokers"][0]["id"] for cluster in (one, two)]
            require_one_clusters_keys(one, two)
            require_one_clusters_sessions(one, two)
            require_no_credential_in_a_broker(one)

    assert ids == [1, 2]
    assert not (tmp_path / "one" / "cluster.db").exists()


def require_one_clusters_keys(one: Cluster, two: Cluster) -> None:
    """Read each home's broker with the keys of the other home."""
    for reader, read in ((one, two), (two, one)):
        key = read_keys(reader.home.secret_file)[0]
        metrics_key = read_keys(reader.home.metrics_secret_file)[0]
        with inspection_of(read.pid("broker-1"), key) as inspection:
            assert inspection.feed()["kind"] == "snapshot"
        with (
            inspection_of(read.pid("broker-1"), metrics_key) as inspection,
            pytest.raises(InspectionFailed, match="403: this key opens /metrics only"),
        ):
            inspection.feed()


def inspection_of(pid: int, key: str) -> Inspection:
    """Connect to the port of a broker that is the inspection port."""
    for port in Process(pid).listening_ports():
        inspection = Inspection("127.0.0.1", port, key)
        try:
            inspection.metrics()
        except InspectionFailed:
            inspection.close()
        else:
            return inspection
    raise AssertionError(f"no port of process {pid} opens to this key")


def require_one_clusters_sessions(one: Cluster, two: Cluster) -> None:
    """Sign in at one console and be known at the other; names apart, they are one console."""
    jar = http.cookiejar.CookieJar()
    browser = build_opener(HTTPCookieProcessor(jar))
    password = one.home.password_file.read_text(encoding="ascii").strip()
    assert not two.home.password_file.exists()
    form = {"username": "admin", "password": password, "csrfmiddlewaretoken": token(browser, one)}

    # A browser sends a cookie to all ports of a host.
    browser.open(f"{one.console}/login", urlencode(form).encode(), timeout=SECONDS)
    page = browser.open(f"{two.console}/", timeout=SECONDS).read().decode()

    mark = (one.folder / "cluster-id").read_text(encoding="ascii")[:8]
    assert {cookie.name for cookie in jar} == {f"sessionid-{mark}", f"csrftoken-{mark}"}
    assert "Sign out" in page


def token(browser: OpenerDirector, cluster: Cluster) -> str:
    page = browser.open(f"{cluster.console}/login", timeout=SECONDS).read().decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found is not None, page
    return found[1]


def require_no_credential_in_a_broker(cluster: Cluster) -> None:
    def has_url(name: str) -> bool:
        environ = Path(f"/proc/{cluster.pid(name)}/environ").read_bytes()
        return b"DATABASE_URL" in environ

    assert {name: has_url(name) for name in ("agent", "broker-1", "web", "collector")} == {
        "agent": True,
        "broker-1": False,
        "web": True,
        "collector": True,
    }
