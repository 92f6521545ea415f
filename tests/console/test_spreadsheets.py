"""No cell of a CSV file is read as a formula, whatever character divides its cells."""

import pytest

from console.spreadsheets import cell


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=1+1", "'=1+1"),
        ("\t=1", "'\t'=1"),
        ("a;=1+1", "a;'=1+1"),
        ("a|@SUM(1)", "a|'@SUM(1)"),
        ("a; +1;-1", "a; '+1;'-1"),
        ('a;"=1+1', "a;\"'=1+1"),
        (" =1+1", "' =1+1"),
        ("a\t=1", "a\t'=1"),
        ("a\n=1", "a\n'=1"),
        (["k;=1"], '["k;\'=1"]'),
        ({"k": "=1"}, '{"k": "=1"}'),
    ],
)
def test_a_formula_gets_a_quote(value: object, written: str) -> None:
    assert cell(value) == written


@pytest.mark.parametrize("value", ["a=b", "a;b", "a - b", "2026-11-19", "", 7, -7, None, 0.5])
def test_other_values_stay_as_they_are(value: object) -> None:
    assert cell(value) == value
