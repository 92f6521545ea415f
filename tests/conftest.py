"""Settings and the fixtures shared by every test."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker

from tests.scale import IS_LONG

# No deadline: the machine is shared, and a slow example is not a wrong one. Derandomized, so that
# a red run is red again; a long run draws new examples and prints how to repeat a failure.
settings.register_profile(
    "samsa",
    deadline=None,
    derandomize=not IS_LONG,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("samsa")

REPORT = "samsa report"

pytest_plugins = ["tests.suite.plugin", "tests.suite.spark"]


@pytest.fixture(scope="session", autouse=True)
def django_test_environment(django_db_blocker: DjangoDbBlocker | None) -> Iterator[None]:
    """Replace that of pytest-django, which keeps tests from databases and records templates.

    Databases are those of `tests/database.py`: none is shared, so none needs a transaction.
    """
    if django_db_blocker is None:
        yield
        return
    with django_db_blocker.unblock():
        yield


@pytest.fixture(autouse=True)
def nothing_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close what a test left open in its own folder.

    Many end with a log as a crash leaves it, and descriptors of the os layer go with nobody: a
    worker that runs a thousand such tests would reach the limit of an ordinary user.
    """
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if folder is None:
        return
    for number in os.listdir("/proc/self/fd"):
        # The descriptor of the listing itself is gone by now.
        with suppress(FileNotFoundError):
            path = os.readlink(f"/proc/self/fd/{number}")
            # A database is closed by its connection, which a thread that is just ending may still
            # have: closed here, it would close whatever has its number by then.
            if path.startswith(f"{folder}/") and ".db" not in Path(path).name:
                os.close(int(number))


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Show a text after the run, whether the test passes or not, in whatever worker it ran."""

    def show(text: str) -> None:
        # User properties travel with the test's result from an xdist worker to the terminal.
        request.node.user_properties.append((REPORT, text))

    return show


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for result in terminalreporter.stats.get(outcome, []):
            texts = [text for name, text in result.user_properties if name == REPORT]
            if texts and result.when == "call":
                terminalreporter.section(result.nodeid, sep="-")
                terminalreporter.write_line("\n".join(texts))
