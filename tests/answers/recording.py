"""The sections of the record, and the files that keep what they answered."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.answers import commands, connect, openapi, pages, rest, sockets, streams
from tests.answers.home import AnswersHome

FOLDER: Final = Path(__file__).with_name("recorded")
# In this order: lists of topics and groups show what earlier sections have left.
SECTIONS: Final[Mapping[str, Callable[[AnswersHome], Iterator[str]]]] = {
    "openapi": openapi.record,
    "rest": rest.record,
    "connect": connect.record,
    "streams": streams.record,
    "sockets": sockets.record,
    "commands": commands.record,
    "pages": pages.record,
}


def file_of(section: str) -> Path:
    return FOLDER / f"{section}.txt"


def differences(section: str, home: AnswersHome) -> list[str]:
    """Ask, and return how the answers differ from the recorded ones, as a diff."""
    found = list(SECTIONS[section](home))
    kept = file_of(section).read_text(encoding="utf-8").splitlines()
    return list(difflib.unified_diff(kept, found, "recorded", "answered", n=3, lineterm=""))
