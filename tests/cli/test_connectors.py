"""`./samsa connectors` against REST of a web process, and what it says of bad input."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result
from pytest_django import Settings

from cli.commands import main
from tests.database import project_home, sqlite_databases

project_home()


from connectors import models, selectors  # noqa: E402
from gateway.access import changes as access_changes  # noqa: E402
from tests.builders import connectors as rows  # noqa: E402
from tests.builders import tokens  # noqa: E402
from tests.fakes.whole_door import whole_door  # noqa: E402

CLUSTER: Final = "the-cluster-of-a-test1"
NOBODY: Final = "http://127.0.0.1:9"
CONFIG: Final = {"connector.class": "samsa.datagen", "topic": "orders", "tasks.max": "2"}
SHOP: Final = json.dumps({"name": "shop", "config": CONFIG})
# Of Apache Kafka's distribution.
FILE_SOURCE: Final = """
# User defined configuration
name=local-file-source
connector.class=FileStreamSource
tasks.max=1
file=test.txt
topic=connect-test
"""


def run(*arguments: str, given: str = "", **environment: str) -> Result:
    environment = {"SAMSA_TOKEN": "", "SAMSA_CONNECT": NOBODY, **environment}
    return CliRunner(env=environment).invoke(main, ["connectors", *arguments], input=given)


class Asked:
    """The command with the address and the token of a door."""

    def __init__(self, **environment: str) -> None:
        self.environment = environment

    def __call__(self, *arguments: str, given: str = "") -> str:
        """Return what it prints, of a command that works."""
        result = run(*arguments, given=given, **self.environment)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout

    def refused(self, *arguments: str, given: str = "") -> str:
        result = run(*arguments, given=given, **self.environment)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        return result.stderr


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[Asked]:
    monkeypatch.setattr(access_changes, "deliver", lambda: None)
    selectors.vault.cache_clear()
    settings.SAMSA_CONNECT_KEY_FILE, settings.SAMSA_HOME = tmp_path / "keys", tmp_path
    with (
        sqlite_databases(tmp_path),
        whole_door(tmp_path, "127.0.0.1:1", cluster=CLUSTER) as door,
    ):
        token = tokens.token(grants=tokens.EVERYTHING)
        yield Asked(SAMSA_CONNECT=f"http://127.0.0.1:{door.port}/connect", SAMSA_TOKEN=token)
    selectors.vault.cache_clear()


@pytest.mark.slow
def test_a_connector_lives_and_ends_by_words(ask: Asked) -> None:
    apply = ("apply", "-f", "-")
    assert ask("list") == "No connectors.\n"
    assert ask(*apply, "--dry-run", given=SHOP) == "connector shop would be applied\n"
    assert ask(*apply, given=SHOP) == "connector shop created\n"
    assert ask(*apply, given=SHOP) == "connector shop unchanged\n"
    bare = {"name": "shop", "config": CONFIG | {"tasks.max": 2, "topic.creation.enable": True}}
    assert ask(*apply, given=json.dumps(bare)) == "connector shop configured\n"
    assert ask(*apply, given=json.dumps(bare)) == "connector shop unchanged\n"
    assert ask(*apply, given=SHOP) == "connector shop configured\n"
    models.Connector.objects.update(state="FAILED")
    assert ask(*apply, given=SHOP) == "connector shop configured\n"
    more = json.dumps([CONFIG | {"name": "shop", "tasks.max": "3"}, CONFIG | {"name": "b"}])
    assert ask(*apply, given=more) == "connector shop configured\nconnector b created\n"

    rows.task(models.Connector.objects.get(name="shop"), state="FAILED", trace="No\n  at 3")
    assert "shop       source  UNASSIGNED  0 of 1 running, 1 failed" in ask("list")
    assert "0 of 1 running, 1 failed  failed: No\n" in ask("list")
    models.Task.objects.update(state="RUNNING", figures=rows.losing(read=1000, dead=90))
    assert "1 of 1 running  loses records: 100 of the last 1,000 since" in ask("list")
    assert "some without a dead letter; 99 × values are no <b>JSON</b>\n" in ask("list")
    models.Task.objects.update(figures=rows.retrying())
    assert "0 of 1 running, 1 retrying  retrying since" in ask("list")
    assert ": cannot connect; attempt 9\n" in ask("describe", "shop")
    models.Task.objects.update(state="FAILED")
    assert ask("list", "-O", "name") == "b\nshop\n"
    described = ask("describe", "shop")
    assert "task 0: FAILED on worker-1\n  No\n    at 3\n" in described
    assert json.loads(ask("describe", "shop", "-O", "json"))["info"]["config"]["tasks.max"] == "3"

    ask("patch", "shop", "--set", "records.per.second=5", "--delete", "tasks.max")
    config = models.Connector.objects.get(name="shop").config
    assert (config["records.per.second"], "tasks.max" in config) == ("5", False)
    assert ask("restart", "shop", "--task", "0") == "task 0 of connector shop restarted\n"
    assert ask("restart", "shop", "--only-failed") == "connector shop restarted\n"
    for verb, target in (("pause", "PAUSED"), ("resume", "STARTED"), ("stop", "STOPPED")):
        ask(verb, "shop", "b")
        assert set(models.Connector.objects.values_list("target", flat=True)) == {target}

    assert ask("delete", "shop", "b", "--yes") == "connector shop deleted\nconnector b deleted\n"
    assert models.Connector.objects.count() == 0


@pytest.mark.slow
def test_a_file_of_kafka_is_taken_as_it_is(ask: Asked, tmp_path: Path) -> None:
    file = tmp_path / "connect-file-source.properties"
    file.write_text(FILE_SOURCE, "utf-8")

    assert ask("apply", "-f", str(file)) == "connector local-file-source created\n"
    assert models.Connector.objects.get().config["topic"] == "connect-test"
    file.write_text("name=a\nname=b\n", "utf-8")
    assert "name is set twice" in run("apply", "-f", str(file)).stderr


@pytest.mark.slow
def test_a_key_that_nobody_takes_is_told_with_the_one_that_may_be_meant(ask: Asked) -> None:
    config = {
        **CONFIG,
        "name": "shop",
        "record.per.second": "5",
        "value.converter.schemas.enable": "false",
        "transforms": "cut",
        "transforms.cut.type": "org.apache.kafka.connect.transforms.DropHeaders",
        "transforms.cut.headers": "a",
        "producer.override.linger.ms": "5",
        "topic.creation.default.partitions": "1",
    }

    result = run("apply", "-f", "-", given=json.dumps(config), **ask.environment)

    assert result.stdout == "connector shop created\n"
    assert result.stderr == (
        "warning: connector shop: samsa.datagen has no config record.per.second, so it has no"
        " effect: did you mean records.per.second?\n"
    )


@pytest.mark.slow
def test_the_keys_of_a_plugin_are_listed(ask: Asked) -> None:
    told = ask("plugins", "samsa.file.sink")

    assert re.search(r"^tasks.max +int +1 +The maximum number of tasks", told, re.MULTILINE)
    assert re.search(r"^file +string +required +The file", told, re.MULTILINE)
    assert "file" in ask("plugins", "samsa.file.sink", "-O", "name").split()
    assert "samsa.none" in ask.refused("plugins", "samsa.none")


@pytest.mark.slow
def test_offsets_are_shown_altered_and_reset(ask: Asked) -> None:
    ask("apply", "-f", "-", given=SHOP)
    assert ask("offsets", "shop") == "No offsets are stored yet.\n"
    place = {"quickstart": "orders", "task": 0}
    offsets = {"offsets": [{"partition": place, "offset": {"number": 7}}]}
    assert "STOPPED" in ask.refused("offsets", "shop", "-f", "-", given=json.dumps(offsets))

    ask("stop", "shop")
    assert "altered" in ask("offsets", "shop", "-f", "-", given=json.dumps(offsets))
    assert json.loads(ask("offsets", "shop", "-O", "json")) == offsets
    assert '{"number": 7}' in ask("offsets", "shop")
    assert "reset" in ask("offsets", "shop", "--reset", "--yes")
    assert models.SourceOffset.objects.count() == 0


@pytest.mark.slow
def test_what_cannot_be_is_refused_with_its_reason(ask: Asked) -> None:
    wrong = json.dumps({"name": "shop", "config": CONFIG | {"tasks.max": "many"}})
    apply = ("apply", "-f", "-")

    told = ask.refused(*apply, given=wrong)
    assert "Invalid value many for configuration tasks.max" in told
    assert "endpoint" not in told
    assert "would be refused" in ask.refused(*apply, "--dry-run", given=wrong)
    assert "Connector none not found" in ask.refused("describe", "none")
    assert "Unknown connector none" in ask.refused("pause", "none")
    ask(*apply, given=SHOP)
    assert "Connector none not found" in ask.refused("delete", "shop", "none", "-y")
    assert models.Connector.objects.count() == 1
    assert "samsa.datagen" in ask("plugins", "-O", "name")
    ask.environment["SAMSA_TOKEN"] = ""
    told = ask.refused("list")
    assert "Error: the Connect API requires a token. Create one with" in told
    assert "./samsa tokens create NAME --admin" in told


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (("apply", "-f", "-"), "{", "line 1, column 2"),
        (("apply", "-f", "-"), "[1]", "connector 1 of the file is not a JSON object"),
        (("apply", "-f", "-"), "{}", "connector 1 of the file has no name"),
        (("apply", "-f", "-"), '{"name": "a", "config": 3}', "has no name"),
        (("apply", "-f", "-"), "[" * 100_000, "is not JSON"),
        (("apply",), "", "Missing option"),
        (("patch", "a"), "", "nothing to change"),
        (("patch", "a", "-s", "b"), "", "is not a change of the form KEY=VALUE"),
        (("patch", "a", "-s", "b=1", "-d", "b"), "", "b is both set and deleted"),
        (("restart", "a", "--task", "1", "--only-failed"), "", "exclude each other"),
        (("offsets", "a", "-f", "-", "--reset"), "", "exclude each other"),
        (("list", "--connect", "ftp://x"), "", "'ftp://x' is not an address"),
        (("list", "--connect", "http://x:y"), "", "'http://x:y' is not an address"),
        (("list", "--token-file", "/nowhere"), "", "/nowhere cannot be read"),
    ],
)
def test_wrong_words_are_told_before_anybody_is_asked(
    arguments: tuple[str, ...], given: str, said: str
) -> None:
    result = run(*arguments, given=given)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_token_that_is_none_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("very secret\nlines")

    of_file, of_variable = run("list", "--token-file", str(file)), run("list", SAMSA_TOKEN="a\nb c")  # noqa: S106 - no token

    assert (of_file.exit_code, of_variable.exit_code) == (2, 2)
    assert f"{file} does not contain a token" in of_file.stderr
    assert "very secret" not in of_file.stderr
    assert "$SAMSA_TOKEN does not contain a token" in of_variable.stderr


def test_nobody_who_answers_is_told_with_what_to_do(tmp_path: Path) -> None:
    nobody = run("list")
    stopped = run("list", "--home", str(tmp_path), SAMSA_CONNECT="")

    assert nobody.exit_code == 1
    assert f"{NOBODY} does not answer" in nobody.stderr
    assert (stopped.exit_code, f"{tmp_path} is not running" in stopped.stderr) == (2, True)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"connect": "http://127.0.0.1:9", "console": "http://127.0.0.1:7"}, "http://127.0.0.1:9 "),
        ({"console": "http://127.0.0.1:7"}, "http://127.0.0.1:7/connect "),
    ],
)
def test_a_home_tells_where_it_serves(told: dict[str, Any], expected: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.json").write_text(json.dumps(told))

    result = run("list", "--home", str(tmp_path), SAMSA_CONNECT="")

    assert expected in result.stderr
