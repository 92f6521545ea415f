"""All interfaces answer as recorded: a change of an answer is a change of its file here."""

from collections.abc import Iterator

import pytest

from tests.answers.home import AnswersHome, answers_home
from tests.answers.recording import SECTIONS, differences

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnswersHome]:
    with answers_home(tmp_path_factory.mktemp("answers") / "home") as found:
        yield found


@pytest.mark.parametrize("section", SECTIONS)
def test_answers_are_as_recorded(section: str, home: AnswersHome) -> None:
    found = differences(section, home)

    assert not found, "\n".join(found)
