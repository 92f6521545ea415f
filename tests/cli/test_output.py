"""Tables, JSON and names."""

import pytest

from cli.output import Column, plain, show_json, show_table


def test_columns_are_as_wide_as_they_need_and_numbers_end_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_table(
        [Column(title="NAME"), Column(title="N", is_number=True), Column(title="LAST")],
        [("a", 1, None), ("longer", 1000, "x")],
    )

    assert capsys.readouterr().out == ("NAME       N  LAST\na          1  -\nlonger  1000  x\n")


def test_a_pipe_gets_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    show_table([Column(title="NAME")], [])

    assert capsys.readouterr().out == "NAME\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (True, "yes"),
        (False, "no"),
        ((1, 2), "1,2"),
        ((), "-"),
        (7, "7"),
        ("ünï", "ünï"),
        ("a\x1b[2Jb\nc", "a\\x1b[2Jb\\nc"),
    ],
)
def test_a_cell_is_text_that_stays_on_its_line(value: object, shown: str) -> None:
    assert plain(value) == shown


def test_json_keeps_the_order_of_its_fields_and_text_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_json([{"b": "ü", "a": 2**63 - 1}])

    assert capsys.readouterr().out == (
        '[\n  {\n    "b": "ü",\n    "a": 9223372036854775807\n  }\n]\n'
    )
