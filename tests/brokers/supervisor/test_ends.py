"""How brokers ended is read again as it was written, and nothing else is believed."""

from pathlib import Path

import pytest

from brokers.supervisor import ends
from brokers.supervisor.ends import BrokerEnd

END = BrokerEnd(how="was killed by signal 9 (SIGKILL)", at_ms=1_700_000_000_000, times=2)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path


def test_what_was_written_is_read_again(home: Path) -> None:
    ends.write(home, {3: END})

    assert ends.read(home) == {3: END}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"x": {}}', '{"1": {"how": 1}}'])
def test_a_file_that_makes_no_sense_says_nothing(home: Path, text: str) -> None:
    (home / ends.ENDS_FILE).write_text(text)

    assert ends.read(home) == {}


def test_a_home_without_a_file_says_nothing(tmp_path: Path) -> None:
    assert ends.read(tmp_path) == {}
