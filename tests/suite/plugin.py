"""The part of the suite that pytest calls: shared services begin and end with the run."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.suite.services import SERVICES
from tests.suite.shared import SharedFailure, keeping, unique_name

RUN = pytest.StashKey[ExitStack]()


def is_worker(config: pytest.Config) -> bool:
    """Tell a worker of xdist from the process that controls the run."""
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RUN] = ExitStack()
    if not is_worker(config):
        config.stash[RUN].enter_context(keeping(SERVICES))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop what was shared; a service that does not stop in order fails the run."""
    try:
        session.config.stash[RUN].close()
    except SharedFailure as failure:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        reporter.section("a shared service did not stop in order", red=True)
        reporter.write_line(str(failure))


def pytest_unconfigure(config: pytest.Config) -> None:
    # A run that ended before its session began has had no other chance.
    config.stash[RUN].close()


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Make names, of topics and groups, that no other test of the run uses."""
    return lambda stem: unique_name(stem, request.node.nodeid)
