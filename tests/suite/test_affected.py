"""Which tests are chosen for a change, on a small house and on this one."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.test import test as command
from tests.suite import affected
from tests.suite.affected import changed_since, choose, project_graph, start_of_change
from tests.suite.graph import Graph
from tests.tidy.project import Source

HOUSE = {
    "brokers/storage/log.py": "from brokers.storage import epochs",
    "brokers/storage/epochs.py": "",
    "brokers/storage/alone.py": "",
    "brokers/replication/partition.py": "from brokers.storage.log import Log",
    "brokers/replication/waits.py": "",
    "brokers/server/broker.py": "from brokers.replication.partition import Partition",
    "console/apps.py": "",
    "console/pages/login.py": 'render("console/login.html")',
    "tests/conftest.py": "",
    "tests/builders/logs.py": "from brokers.storage.log import Log",
    "tests/brokers/storage/test_log.py": "from tests.builders.logs import log",
    "tests/brokers/storage/test_alone.py": "import brokers.storage.alone",
    "tests/brokers/replication/test_partition.py": "import brokers.replication.partition",
    "tests/brokers/replication/test_waits.py": "import brokers.replication.waits",
    "tests/brokers/server/test_broker.py": "import brokers.server.broker",
    "tests/console/pages/test_login.py": "import console.pages.login",
    "tests/perf/test_log_speed.py": "import brokers.storage.log",
    "tests/crash/test_kill.py": "import brokers.server.broker",
    "tests/tidy/test_docs.py": 'GAPS = "docs/gaps.md"',
}


@pytest.fixture(scope="module")
def house() -> Graph:
    return Graph({path: Source.parse(path, text) for path, text in HOUSE.items()})


def chosen(house: Graph, *changed: str) -> set[str]:
    return set(choose(house, changed, "HEAD").places) - {"tests/tidy"}


def test_tests_of_the_room_and_those_of_its_importers_that_reach_the_change(house: Graph) -> None:
    assert chosen(house, "brokers/storage/epochs.py") == {
        "tests/brokers/storage/test_log.py",
        "tests/brokers/storage/test_alone.py",
        "tests/brokers/replication/test_partition.py",
    }


def test_a_test_anywhere_that_names_the_changed_file_is_about_it(house: Graph) -> None:
    choice = choose(house, ["brokers/storage/log.py"], "HEAD")

    assert "tests/perf/test_log_speed.py" in choice.places
    assert "tests/crash/test_kill.py" not in choice.places
    assert "tests/perf/test_log_speed.py" in choice.alone_in
    assert "tests/brokers/replication/test_partition.py" not in choice.alone_in


def test_a_changed_test_runs_and_a_changed_builder_runs_its_users(house: Graph) -> None:
    assert chosen(house, "tests/crash/test_kill.py") == {"tests/crash/test_kill.py"}
    assert chosen(house, "tests/builders/logs.py") == {"tests/brokers/storage/test_log.py"}


def test_a_changed_conftest_runs_everything_below_it(house: Graph) -> None:
    assert chosen(house, "tests/conftest.py") == {path for path in HOUSE if "test_" in path}


def test_a_file_that_is_no_python_runs_its_room_and_who_names_it(house: Graph) -> None:
    assert chosen(house, "console/templates/console/login.html") == {
        "tests/console/pages/test_login.py"
    }
    assert chosen(house, "docs/gaps.md") == {"tests/tidy/test_docs.py"}


def test_a_file_that_is_gone_runs_its_room(house: Graph) -> None:
    assert "tests/brokers/storage/test_log.py" in chosen(house, "brokers/storage/gone.py")


@pytest.mark.parametrize("path", ["pyproject.toml", "requirements-dev.txt", "samsa", ".ci/run"])
def test_what_everything_depends_on_runs_everything(house: Graph, path: str) -> None:
    choice = choose(house, [path, "docs/gaps.md"], "HEAD")

    assert choice.places == []
    assert choice.alone_in == ["tests"]
    assert path in choice.reasons[0]


def test_without_a_change_only_the_house_rules_run(house: Graph) -> None:
    assert choose(house, [], "HEAD").places == ["tests/tidy"]


def test_the_choice_is_explained(house: Graph) -> None:
    assert choose(house, ["brokers/storage/epochs.py"], "v1").reasons == [
        "files changed since v1: 1, in brokers.storage",
        "files of tests about them: 2",
        "that reach them from brokers.replication: 1",
    ]


@pytest.mark.slow
def test_in_this_house_a_broker_is_reached_from_its_rooms_only() -> None:
    graph = project_graph()
    choice = choose(graph, ["brokers/storage/log.py"], "HEAD")

    assert "tests/brokers/storage/test_log.py" in choice.places
    assert "tests/brokers/replication/test_partition.py" in choice.places
    assert "tests/brokers/server/test_broker.py" in choice.places
    assert [
        place for place in choice.places if place.startswith(("tests/cli", "tests/console"))
    ] == []
    # Programs and tables that only strings name are followed too.
    whole = graph.reached_from(["brokers/protocol/messages/fetch.py"])
    assert {"brokers/server/daemon.py", "brokers/supervisor/components.py"} <= whole


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(affected, "ROOT", tmp_path)
    for variable in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(variable, "somebody")
    for variable in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(variable, "somebody@example.org")
    git(tmp_path, "init", "-q", "-b", "main")
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        commit(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "x")


def test_a_change_is_what_is_not_committed(repository: Path) -> None:
    (repository / "one").unlink()
    (repository / "new ü").write_text("")

    assert start_of_change() == "HEAD"
    assert changed_since("HEAD") == ["new ü", "one"]


def test_without_that_a_change_is_the_branch_or_the_last_commit(repository: Path) -> None:
    assert changed_since(start_of_change()) == ["two"]

    git(repository, "checkout", "-q", "-b", "mine")
    for name in ("three", "four"):
        (repository / name).write_text(name)
        commit(repository)

    assert changed_since(start_of_change()) == ["four", "three"]


def test_a_revision_that_does_not_exist_is_told_in_gits_words(repository: Path) -> None:
    with pytest.raises(SystemExit, match="no-such"):
        changed_since("no-such")


def test_since_without_affected_is_refused() -> None:
    ran = CliRunner().invoke(command, ["--since", "HEAD~3"])

    assert ran.exit_code == 2
    assert "--affected" in ran.output
