"""Settings and the one fixture shared by every test."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

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
