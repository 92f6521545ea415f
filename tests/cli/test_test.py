"""pytest runs where the user is, with the settings of the project, and its results add up."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cli.test import INTERRUPTED, Part, needed, run, run_part, run_pytest, tell
from tests.suite.extras import EXTRAS

# A test in the user's folder that passes under the project's own settings only.
PROBE = """
from pathlib import Path
from tests.tidy.project import ROOT

def test_settings(request):
    assert Path.cwd() == Path(__file__).parent
    assert request.config.rootpath == ROOT
    assert request.config.inipath == ROOT / "pyproject.toml"
    assert request.config.getini("xfail_strict")
"""


@pytest.mark.slow
def test_files_are_named_relative_to_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probe.py").write_text(PROBE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    outcome = tmp_path / "outcome.json"

    exit_code = run_pytest(
        ["probe.py", "-p", "tests.suite.plugin", "-p", "no:cacheprovider", f"--outcome={outcome}"]
    )

    assert exit_code == 0
    assert json.loads(outcome.read_text())["counts"] == {"passed": 1, "failed": 0, "skipped": 0}


class FakePytest:
    """Writes the outcomes it was given, one for each run, and notes with what it was called."""

    def __init__(self, *outcomes: tuple[int, dict[str, object] | None]) -> None:
        self.outcomes = list(outcomes)
        self.calls: list[list[str]] = []
        self.lists: list[object] = []

    def __call__(self, arguments: list[str], *, is_shown: bool = True) -> int:
        options = dict(argument.split("=") for argument in arguments if "=" in argument)
        self.calls.append([argument for argument in arguments if "=" not in argument])
        if "--alone" in options:
            self.lists.append(json.loads(Path(options["--alone"]).read_text(encoding="utf-8")))
        code, told = self.outcomes.pop(0)
        if told is not None:
            Path(options["--outcome"]).write_text(json.dumps(told), encoding="utf-8")
        return code


def outcome(*, passed: int = 0, failed: int = 0, skipped: int = 0, **told: object) -> dict:
    counts = {"passed": passed, "failed": failed, "skipped": skipped}
    rest = {"alone": [], "left_out": 0, "needs": [], "slowest": [], "is_stopped": False}
    return {"counts": counts, **rest, **told}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePytest:
    made = FakePytest()
    monkeypatch.setattr("cli.test.run_pytest", made)
    return made


def test_what_must_be_alone_runs_afterwards_with_the_same_arguments(
    fake: FakePytest, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.outcomes = [
        (0, outcome(passed=7, skipped=1, alone=["a.py::speed"])),
        (1, outcome(passed=1, failed=1)),
    ]

    code = run(["-k", "x"])

    assert code == 1
    assert fake.calls == [["-k", "x"], ["-k", "x"]]
    assert fake.lists == [["a.py::speed"]]
    assert capsys.readouterr().out.startswith("8 passed, 1 failed, 1 skipped in ")


def test_one_run_is_enough_where_nothing_must_be_alone(fake: FakePytest) -> None:
    fake.outcomes = [(0, outcome(passed=7))]

    assert run([]) == 0
    assert len(fake.calls) == 1


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (1, outcome(failed=1, alone=["a.py::speed"], is_stopped=True)),
        (INTERRUPTED, outcome(alone=["a.py::speed"])),
    ],
    ids=["-x", "Ctrl-C"],
)
def test_a_run_that_was_stopped_is_not_continued(
    fake: FakePytest, code: int, told: dict[str, object]
) -> None:
    fake.outcomes = [(code, told)]

    assert run([]) == code


@pytest.mark.parametrize(("codes", "expected"), [((5, 0), 0), ((5, 1), 1), ((3, 0), 3)])
def test_nothing_selected_beside_others_is_no_failure(
    fake: FakePytest, codes: tuple[int, int], expected: int
) -> None:
    fake.outcomes = [(codes[0], outcome(alone=["a.py::speed"])), (codes[1], outcome())]

    assert run([]) == expected


def test_tests_that_are_not_found_again_to_run_alone_have_failed(
    fake: FakePytest, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.outcomes = [(0, outcome(passed=1, alone=["a::b"])), (5, outcome())]

    assert run([]) == 1
    assert "1 passed, 1 failed, 0 skipped" in capsys.readouterr().out


def test_a_run_that_ended_without_an_outcome_is_a_failure(fake: FakePytest, tmp_path: Path) -> None:
    fake.outcomes = [(4, None)]

    part = run_part([], tmp_path / "outcome.json")

    assert part == Part(code=4, counts=Counter(failed=1), is_stopped=True)


def test_a_long_run_ends_with_its_slowest_tests_and_what_was_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = [(f"a.py::test_{number}", float(number)) for number in range(11, 0, -1)]
    parts = [
        Part(code=0, counts=Counter(passed=20), slowest=slow, left_out=3),
        Part(code=0, counts=Counter(passed=1), slowest=[("b.py::test_speed", 99.0)]),
    ]

    tell(parts, 240.04)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "the slowest:"
    assert lines[1:3] == ["    99.0 s  b.py::test_speed", "    11.0 s  a.py::test_11"]
    assert len(lines) == 13
    assert lines[-2].startswith("left out: 3 campaigns and tests that need a browser")
    assert lines[-1] == "21 passed, 0 failed, 0 skipped in 240.0 s"


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = {name: replace(extra, is_here=lambda: False) for name, extra in EXTRAS.items()}
    monkeypatch.setattr("cli.test.EXTRAS", bare)


@pytest.mark.usefixtures("nothing_installed")
def test_named_files_need_only_what_their_tests_require(fake: FakePytest) -> None:
    fake.outcomes = [(0, outcome(passed=0, needs=["kcat", "java"]))]

    assert needed(["tests/x.py"]) == ["java", "kcat"]
    assert fake.calls == [["tests/x.py", "--collect-only", "-q"]]


@pytest.mark.usefixtures("nothing_installed")
def test_a_selection_that_cannot_be_collected_needs_nothing(fake: FakePytest) -> None:
    fake.outcomes = [(4, None)]

    assert needed(["--no-such-option"]) == []


def test_nothing_is_collected_first_where_everything_is_installed(
    fake: FakePytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.test.EXTRAS", {})

    assert needed(["tests/x.py"]) == []
    assert fake.calls == []
