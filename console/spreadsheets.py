"""Writes values as cells of CSV files that no spreadsheet reads as formulas. Pure.

Names and records come from untrusted programs. A spreadsheet that divides lines at another
character than the comma, such as the semicolon of most European settings, finds further cells
within a cell, so a formula may begin behind such a character too.
"""

import json
import re
from typing import Final

# Characters that divide cells in some setting, and those that begin a formula. Spaces and quotes
# between the two do not count for spreadsheets.
BEHIND_DIVIDER: Final = re.compile(r"([;|\t\r\n][ \"]*)(?=[=+\-@])")
BEGINS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def cell(value: object) -> object:
    """Return a value as one cell; a quote before a formula makes a spreadsheet show it as text."""
    value = as_text(value)
    if not isinstance(value, str):
        return value
    quoted = BEHIND_DIVIDER.sub(r"\1'", value)
    return f"'{quoted}" if quoted.lstrip(" ").startswith(BEGINS) else quoted


def as_text(value: object) -> object:
    """Return lists and objects as JSON, and anything else as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
