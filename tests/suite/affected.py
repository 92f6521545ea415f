"""Which tests a change can break, as far as its author should wait for: `./samsa test --affected`.

Chosen are the tests of the rooms that changed, those tests of rooms importing them that reach the
change, whatever names a changed file itself, and the house rules. Not chosen are tests that reach
the change through several rooms, such as a whole cluster driven by a foreign client: CI runs them.

Run as a program it prints its choice as JSON, for `cli/test.py`.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.suite.graph import Graph
from tests.tidy.import_map import room_of
from tests.tidy.project import ROOT, Source, no_collections

TIDY: Final = "tests/tidy"
MAIN: Final = "main"
# What every test depends on and no Python names: the settings of the tools, and the packages.
EVERYTHING: Final = ("pyproject.toml", "requirements", "samsa", ".ci/")
# More places than this are not named one by one.
PLACES_TOLD: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    # Files and folders for pytest; empty means all tests.
    places: Sequence[str]
    # Where also tests run that must be alone; elsewhere they take long and say little.
    alone_in: Sequence[str]
    # What was chosen and why, in sentences.
    reasons: Sequence[str]


def choose(graph: Graph, changed: Sequence[str], since: str) -> Choice:
    """Choose tests for changed files, which are paths from the root of the project."""
    head = f"files changed since {since}: {len(changed)}"
    if shaking := [path for path in changed if path.startswith(EVERYTHING)]:
        return Choice(
            places=[], alone_in=["tests"], reasons=[f"{head}: all tests, for {told(shaking)}"]
        )
    named = {path for path in changed if path in graph.sources} | users_of_data(graph, changed)
    product = [path for path in changed if path.partition("/")[0] != "tests"]
    rooms = {room for path in product if (room := room_of_path(path)) is not None}
    importers = importing(graph, rooms)
    helpers = graph.reached_from(path for path in named if path.startswith("tests/"))
    direct = helpers | {user for path in named for user in graph.users[path]}
    reached = graph.reached_from(named)
    tests = [path for path in graph.sources if is_test(path)]
    subjects = {path for path in tests if path in direct or mirrored_room(path) in rooms}
    whence = told(sorted(importers)) or "nowhere"
    others = {path for path in tests if mirrored_room(path) in importers and path in reached}
    return Choice(
        places=sorted({*subjects, *others, TIDY}),
        alone_in=sorted(subjects),
        reasons=[
            f"{head}, in {told(sorted(rooms)) or 'no room'}",
            f"files of tests about them: {len(subjects)}",
            f"that reach them from {whence}: {len(others - subjects)}",
        ],
    )


def importing(graph: Graph, rooms: set[str]) -> set[str]:
    """Return the rooms with a module that imports one of these rooms."""
    return {
        room
        for path, users in graph.users.items()
        if room_of_path(path) in rooms
        for user in users
        if (room := room_of_path(user)) is not None
    } - rooms


def users_of_data(graph: Graph, changed: Iterable[str]) -> set[str]:
    """Return the files that read a changed file which is no Python, by its name in their text."""
    found = set()
    for path in changed:
        if path in graph.sources:
            continue
        found |= graph.mentioning(Path(path).name)
        if path.startswith("tests/"):
            # Test data is read by folder.
            found |= graph.mentioning(f'"{Path(path).parent.name}"')
    return found


def is_test(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_")


def mirrored_room(test: str) -> str | None:
    """Return the room whose folder a test lies in the mirror of."""
    return room_of_path(test.removeprefix("tests/").replace("/test_", "/"))


def room_of_path(path: str) -> str | None:
    return room_of(path.removesuffix(".py").replace("/", "."))


def told(names: Sequence[str]) -> str:
    more = len(names) - PLACES_TOLD
    return ", ".join(names[:PLACES_TOLD]) + (f" and {more} more" if more > 0 else "")


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def start_of_change() -> str:
    """Return the revision that a change began at: HEAD while something is not committed."""
    if git("status", "--porcelain").strip():
        return "HEAD"
    base = git("merge-base", "HEAD", MAIN).strip()
    # On the main branch a change is one commit.
    return "HEAD~1" if base == git("rev-parse", "HEAD").strip() else base


def changed_since(revision: str) -> list[str]:
    """Return the files that differ from a revision, those that git does not know yet included."""
    differing = git("diff", "--name-only", "--no-renames", "-z", revision, "--")
    unknown = git("ls-files", "--others", "--exclude-standard", "-z")
    return sorted(filter(None, {*differing.split("\0"), *unknown.split("\0")}))


def project_graph() -> Graph:
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.py")
    paths = [path for path in listed.split("\0") if path and (ROOT / path).exists()]
    with no_collections():
        return Graph(
            {path: Source.parse(path, (ROOT / path).read_text(encoding="utf-8")) for path in paths}
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the tests that a change can break.")
    parser.add_argument("--since", help="the revision that the change began at")
    since = parser.parse_args().since or start_of_change()
    choice = choose(project_graph(), changed_since(since), since)
    json.dump(
        {"places": choice.places, "alone_in": choice.alone_in, "reasons": choice.reasons},
        sys.stdout,
    )


if __name__ == "__main__":
    main()
