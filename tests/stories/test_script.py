"""Every story is played, and mistakes of its author are reported with their place."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stories.script import Commands, Milliseconds, Story, StoryError
from tests.stories.worlds import commands_of

STORIES = sorted(Path(__file__).parent.glob("*.txt"))
OPENING = "# A stage counts. It shows each number."


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story_shows_what_the_system_does(
    path: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    played = Story.read(path).play(commands_of(path, tmp_path))

    if pytestconfig.getoption("--rewrite-stories", default=False):
        path.write_text(played, encoding="utf-8")
    assert played == path.read_text(encoding="utf-8")


def counting() -> Commands:
    def add(*numbers: int, factor: int = 1) -> Iterator[str]:
        yield str(sum(numbers) * factor)

    def wait(time: Milliseconds) -> Iterator[str]:
        yield f"{time} ms"

    return {"add": add, "wait": wait}


def test_answers_are_replaced_and_everything_else_is_kept() -> None:
    text = f"{OPENING}\n\nadd 1 2 factor=2\n----\n7\n8\n\n# A pause.\nwait 2s\n----\n"

    played = Story.parse("a.txt", text).play(counting())

    assert played == (
        f"{OPENING}\n\nadd 1 2 factor=2\n----\n6\n\n# A pause.\nwait 2s\n----\n2000 ms\n"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("# One sentence.\n", "a.txt:1: a story begins with a comment of two sentences"),
        (f"{OPENING}\n\nadd 1\n1\n", "a.txt:3: the line after the command 'add 1' is not ----"),
        (f"{OPENING}\n\n----\n1\n", "a.txt:3: no command is before ----"),
        (
            f"{OPENING}\n\nadd 1\n----\n1\nadd 2\n----\n2\n",
            "a.txt:6: no empty line is before the command 'add 2'",
        ),
        (f"{OPENING}\n\nsum 1\n----\n", "a.txt:3: there is no command 'sum', but add, wait"),
        (f"{OPENING}\n\nwait 1s 2s\n----\n", "a.txt:3: '2s' is too much: wait TIME"),
        (f"{OPENING}\n\nwait\n----\n", "a.txt:3: missing a required argument: 'time': wait TIME"),
        (f"{OPENING}\n\nwait soon\n----\n", "a.txt:3: time is a time such as 3s, not 'soon'"),
        (f"{OPENING}\n\nadd x=1\n----\n", "a.txt:3: numbers is a number, not 'x=1'"),
    ],
)
def test_mistake_in_a_story_is_reported_with_its_line(text: str, error: str) -> None:
    with pytest.raises(StoryError) as raised:
        Story.parse("a.txt", text).play(counting())

    assert str(raised.value).startswith(error)
