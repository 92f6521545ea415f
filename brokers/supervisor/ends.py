"""Records how the brokers of a home ended last without an order, in run/ends.json.

The agent writes it into the rows of the brokers, so that pages of any host can say it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

ENDS_FILE: Final = Path("run", "ends.json")
# A hundred brokers with a sentence each.
MAX_FILE_BYTES: Final = 128 * 2**10
# The length to which a sentence is cut.
MAX_HOW: Final = 249


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEnd:
    """How a broker ended, when, and how often it did since its supervisor started."""

    how: str
    at_ms: int
    times: int


def write(home: Path, ends: Mapping[int, BrokerEnd]) -> None:
    """Replace the file atomically; OSError if the disk refuses."""
    file = home / ENDS_FILE
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps({str(key): asdict(end) for key, end in ends.items()}))
    draft.replace(file)


def read(home: Path) -> dict[int, BrokerEnd]:
    """Return the ends by broker id; those of a file that is missing or invalid are not known."""
    try:
        with (home / ENDS_FILE).open("rb") as opened:
            said = json.loads(opened.read(MAX_FILE_BYTES))
        return {int(key): _end(entry) for key, entry in said.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _end(entry: Mapping[str, object]) -> BrokerEnd:
    how, at_ms, times = entry["how"], entry["at_ms"], entry["times"]
    if not isinstance(how, str) or type(at_ms) is not int or type(times) is not int:
        raise TypeError(f"{entry!r} is not an end")
    return BrokerEnd(how=how[:MAX_HOW], at_ms=at_ms, times=times)
