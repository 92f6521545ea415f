"""The command line of the benches: options belong to suites, and long suites are called by name."""

import pytest
from click.testing import CliRunner

from bench import __main__ as command
from bench.suites import LONG, OPTIONS, SUITES


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["codec", "--peer", "h:1"], "--peer belongs to broker"),
        (["--minutes", "5"], "--minutes belongs to scale and soak"),
        (["soak", "--minutes", "0"], "0 is not in the range"),
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
