"""The part of the suite that pytest calls: what runs where, what is shared, and what is reported.

Tests that measure time do not run in workers, where others run beside them: their ids go to
`./samsa test`, which runs them afterwards.
"""

import gc
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pytest

from cli import durations
from tests.extras import missing
from tests.scale import IS_DESK
from tests.suite.extras import EXTRAS, is_owed
from tests.suite.folders import write_to_memory
from tests.suite.order import SPARK, LongestFirst, unit_of_file
from tests.suite.services import SERVICES
from tests.suite.shared import SharedFailure, keeping, unique_name

# As many as `./samsa test` shows of both parts of a run.
SLOWEST_TOLD: Final = 10
# What pytest calls the outcomes of a test -> the word in the closing line.
OUTCOMES: Final = {
    "passed": "passed",
    "xpassed": "passed",
    "failed": "failed",
    "error": "failed",
    "skipped": "skipped",
    "xfailed": "skipped",
}


class Run:
    """What the controlling process, or one worker, knows of its run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.services = ExitStack()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        # The ids of tests that wait for a run of their own, and how many the desk leaves out.
        self.alone: list[str] = []
        self.left_out = 0
        # The extras that the selected tests need.
        self.needs: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        # Every worker collects the same tests; one that died has reported none.
        told = getattr(node, "workeroutput", {})
        self.alone = told.get("alone", self.alone)
        self.left_out = told.get("left_out", self.left_out)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if is_worker(self.config):
            told = {"alone": self.alone, "left_out": self.left_out}
            self.config.workeroutput.update(told)  # type: ignore[attr-defined]
            return
        self.stop_services(session)
        if self.seconds:
            durations.save(self.seconds)
        if (file := self.config.getoption("--outcome", default=None)) is not None:
            Path(file).write_text(json.dumps(self.outcome()), encoding="utf-8")

    def pytest_terminal_summary(self) -> None:
        # `./samsa test` asks for the outcome, and runs them next.
        if self.alone and self.config.getoption("--outcome", default=None) is None:
            left = f"{len(self.alone)} tests measure time and did not run beside others"
            self.terminal.write_line(f"{left}: ./samsa test runs them afterwards", yellow=True)

    def stop_services(self, session: pytest.Session) -> None:
        """Stop what was shared; a service that does not stop in order fails the run."""
        try:
            self.services.close()
        except SharedFailure as failure:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            self.terminal.section("a shared service did not stop in order", red=True)
            self.terminal.write_line(str(failure))

    def outcome(self) -> dict[str, Any]:
        counts = Counter(dict.fromkeys(OUTCOMES.values(), 0))
        for outcome, word in OUTCOMES.items():
            counts[word] += len(self.terminal.stats.get(outcome, []))
        limit = self.config.getoption("maxfail")
        return {
            "counts": counts,
            "alone": self.alone,
            "left_out": self.left_out,
            "needs": sorted(self.needs),
            "slowest": nlargest(SLOWEST_TOLD, self.seconds.items(), key=itemgetter(1)),
            "is_stopped": bool(limit) and counts["failed"] >= limit,
        }

    @property
    def terminal(self) -> pytest.TerminalReporter:
        found = self.config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(found, pytest.TerminalReporter)
        return found

    def pytest_unconfigure(self) -> None:
        # A run that ended before its session began has not closed them yet.
        self.services.close()


RUN = pytest.StashKey[Run]()


def is_worker(config: pytest.Config) -> bool:
    """Tell a worker of xdist from the process that controls the run."""
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RUN] = run = Run(config)
    config.pluginmanager.register(run, "samsa-run")
    if config.getoption("numprocesses", default=None):
        write_to_memory()
    if not is_worker(config):
        run.services.enter_context(keeping(SERVICES))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass by files of which no test is wanted, so that they are not imported."""
    wanted = listed(config)
    if wanted is None or collection_path.is_dir():
        return None
    path = durations.relative(collection_path)
    # A file outside of the project has no path in the ids of its tests.
    is_wanted = path.startswith("..") or any(name.startswith(f"{path}::") for name in wanted)
    return None if is_wanted else True


def listed(config: pytest.Config) -> frozenset[str] | None:
    """Return the ids of the tests that this run is limited to; None where it is not."""
    file = config.getoption("--alone", default=None)
    return None if file is None else frozenset(json.loads(Path(file).read_text("utf-8")))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Leave out a file that imports the packages of an extra which is not installed."""
    report = yield
    name = extra_of_failure(report)
    if name is None or (EXTRAS[name].is_required and is_owed()):
        return report
    run = collector.config.stash[RUN]
    run.needs.add(name)
    report.result = []
    # Else pytest would take the failure for one to debug.
    report.__dict__.pop("call", None)
    if IS_DESK:
        run.left_out += durations.count_tests(collector.path)
        report.outcome, report.longrepr = "passed", None
    else:
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, EXTRAS[name].missing)
    return report


def extra_of_failure(report: pytest.CollectReport) -> str | None:
    """Return the extra that is not installed and brings what a file could not import."""
    call = report.__dict__.get("call")
    if not report.failed or call is None or call.excinfo is None:
        return None
    cause = call.excinfo.value.__cause__
    package = cause.name if isinstance(cause, ModuleNotFoundError) and cause.name else ""
    found = (name for name, extra in EXTRAS.items() if package.partition(".")[0] in extra.packages)
    return next((name for name in found if not EXTRAS[name].is_here()), None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    for item in items:
        mark_needs(item)
    require_one_spark(items)
    yield
    run, wanted = config.stash[RUN], listed(config)
    if wanted is not None:
        leave_out(config, items, lambda item: item.nodeid not in wanted)
    run.needs.update(name for item in items for name in needs_of(item))
    if IS_DESK:
        run.left_out += len(leave_out(config, items, is_left_to_ci))
    if is_worker(config):
        alone = leave_out(config, items, lambda item: is_marked(item, "alone"))
        run.alone = [item.nodeid for item in alone]


def mark_needs(item: pytest.Item) -> None:
    """Turn what `requires` noted into marks: skipped where it is missing, foreign where it is."""
    names = needs_of(item)
    reasons = [reason for name in names if (reason := missing(name))]
    if reasons:
        item.add_marker(pytest.mark.skip(reason="; ".join(reasons)))
    if any(EXTRAS[name].is_foreign for name in names):
        item.add_marker("foreign")


def needs_of(item: pytest.Item) -> list[str]:
    return [name for mark in item.iter_markers("needs") for name in mark.args]


def is_left_to_ci(item: pytest.Item) -> bool:
    return is_marked(item, "foreign") or is_marked(item, "campaign")


def require_one_spark(items: list[pytest.Item]) -> None:
    """Refuse a test that would start a Spark beside the one of all others, in its own worker."""
    users = (item for item in items if "spark" in getattr(item, "fixturenames", ()))
    files = {item.nodeid.partition("::")[0] for item in users}
    if lost := sorted(file for file in files if unit_of_file(file) != SPARK):
        raise pytest.UsageError(
            f"{', '.join(lost)}: uses the fixture `spark`, and its text does not say so: "
            "add a row to TOGETHER in tests/suite/order.py"
        )


def is_marked(item: pytest.Item, name: str) -> bool:
    return item.get_closest_marker(name) is not None


def leave_out(
    config: pytest.Config, items: list[pytest.Item], is_unwanted: Callable[[pytest.Item], bool]
) -> list[pytest.Item]:
    """Deselect what is unwanted, and return it."""
    unwanted = [item for item in items if is_unwanted(item)]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = [item for item in items if not is_unwanted(item)]
    return unwanted


def pytest_collection_finish() -> None:
    """Take what collection made, 300,000 objects, out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst | None:
    return LongestFirst(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Make names, of topics and groups, that no other test of the run uses."""
    return lambda stem: unique_name(stem, request.node.nodeid)
