"""The command line of the benches: options belong to suites, and long suites are called by name."""

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from bench import __main__ as command
from bench.measure import NoPeer, Table
from bench.suites import KAFKA, LONG, OPTIONS, SUITES


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["codec", "--peer", "h:1"], "--peer belongs to broker"),
        (["--minutes", "5"], "--minutes belongs to scale and soak and verdicts"),
        (["soak", "--minutes", "0"], "0 is not in the range"),
        (["groups", "--peer"], "--peer without an address belongs to broker"),
    ],
)
def test_an_option_of_another_suite_is_refused(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(command.main, arguments)

    assert result.exit_code == 2
    assert sentence in result.output


def test_options_that_were_given_reach_their_suite() -> None:
    assert command.given({"peer": None, "minutes": 5}, "soak") == {"minutes": 5}
    assert command.given({"peer": "h:1", "minutes": None}, "broker") == {"peer": "h:1"}
    assert command.given({"peer": None, "minutes": None}, None) == {}


def test_the_tables_of_suites_speak_of_suites() -> None:
    assert set(SUITES) >= LONG
    assert set(OPTIONS) <= set(SUITES)


def test_a_peer_that_cannot_be_run_ends_the_bench_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    class Suite:
        def run(self, **options: str | int) -> Iterator[Table]:
            asked.append(options)
            raise NoPeer("no Kafka beside: mvn is not installed")
            yield

    monkeypatch.setattr(command, "load", lambda _name: Suite())

    result = CliRunner().invoke(command.main, ["broker", "--peer"])

    assert asked == [{"peer": KAFKA}]
    assert result.exit_code == 1
    assert result.output.endswith("Error: no Kafka beside: mvn is not installed\n")
