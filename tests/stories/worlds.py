"""Finds the commands of a story by the first word of its file's name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.stories import calls, connectors, groups, logs, metadata, sockets
from tests.stories.script import Commands

# The first word of a story's name: what makes the commands of one story, in an empty folder.
WORLDS: Final[Mapping[str, Callable[[Path], Commands]]] = {
    "connectors": connectors.commands,
    "groups": groups.commands,
    "log": logs.commands,
    "metadata": metadata.commands,
    "rest": calls.commands,
    "socket": sockets.commands,
}


def commands_of(story: Path, folder: Path) -> Commands:
    return WORLDS[story.stem.partition("_")[0]](folder)
