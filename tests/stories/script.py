"""Reads a story, runs its commands, and writes the story with the answers that came.

A story is a text: commands, each with a line of dashes and its answer behind it, and comments. Its
first comment is two sentences that say what it shows. `README.md` describes the form for authors.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, get_annotations, signature
from pathlib import Path
from typing import Any, Final

from brokers.protocol.errors import KafkaError

SEPARATOR: Final = "----"
COMMENT: Final = "#"
# Milliseconds by the unit of a time, such as `3s` or `7d`.
UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

Command = Callable[..., Iterable[str]]
Commands = Mapping[str, Command]


class Milliseconds(int):
    """A time as stories write it: `250ms`, `3s`, `5m`, `1h`, `7d`."""


class StoryError(Exception):
    """A mistake of the author, with its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command, the number of its line, and the lines of its answer."""

    line: int
    command: str
    answer: range


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    name: str
    lines: Sequence[str]
    steps: Sequence[Step]

    @classmethod
    def read(cls, path: Path) -> "Story":
        return cls.parse(path.name, path.read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, name: str, text: str) -> "Story":
        lines = text.splitlines()
        _check_opening(name, lines)
        steps, at = [], 0
        while at < len(lines):
            if lines[at].strip() and not lines[at].startswith(COMMENT):
                steps.append(_step(name, lines, at))
                at = steps[-1].answer.stop
            at += 1
        return cls(name=name, lines=lines, steps=steps)

    def play(self, commands: Commands) -> str:
        """Return the story as it is with the answers of these commands."""
        played: list[str] = []
        after = 0
        for step in self.steps:
            played += self.lines[after : step.answer.start]
            played += self._answer(step, commands)
            after = step.answer.stop
        return "\n".join([*played, *self.lines[after:], ""])

    def _answer(self, step: Step, commands: Commands) -> list[str]:
        try:
            answer = run(commands, step.command)
        except StoryError as error:
            raise StoryError(f"{self.name}:{step.line}: {error}") from error
        # Whatever a command fails with is raised again, with its place.
        except Exception as error:
            error.add_note(f"{self.name}:{step.line}: {step.command}")
            raise
        assert answer, f"{self.name}:{step.line}: {step.command!r} answers nothing"
        assert all(answer), f"{self.name}:{step.line}: an empty line would end the answer"
        return answer


def run(commands: Commands, text: str) -> list[str]:
    """Run one command, as a story writes it; return its answer.

    A refusal is an answer: its code and its message.
    """
    name, *words = shlex.split(text)
    command = commands.get(name)
    if command is None:
        raise StoryError(f"there is no command {name!r}, but {', '.join(sorted(commands))}")
    given, named = _bound(name, command, words)
    try:
        return list(command(*given, **named))
    except KafkaError as error:
        return [f"{error.code.name}: {error.message}"]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 record`, `2 records`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def usage(name: str, command: Command) -> str:
    """Return how a command is written: `join MEMBER [session=…]`."""
    parts = [name]
    for parameter in signature(command).parameters.values():
        match parameter.kind:
            case Parameter.KEYWORD_ONLY:
                part = f"{parameter.name}=…"
            case Parameter.VAR_POSITIONAL:
                part = f"[{parameter.name.upper()} …]"
            case _:
                part = parameter.name.upper()
        is_needed = parameter.default is Parameter.empty
        parts.append(part if is_needed else f"[{part}]")
    return " ".join(parts)


def _check_opening(name: str, lines: Sequence[str]) -> None:
    opening = []
    for line in lines:
        if not line.startswith(COMMENT):
            break
        opening.append(line.removeprefix(COMMENT).strip())
    sentences = re.findall(r"[.!?](?= [A-Z]|$)", " ".join(opening))
    if len(sentences) != 2:
        raise StoryError(
            f"{name}:1: a story begins with a comment of two sentences that say what it shows, "
            f"this has {len(sentences)}"
        )


def _step(name: str, lines: Sequence[str], at: int) -> Step:
    if lines[at] == SEPARATOR:
        raise StoryError(f"{name}:{at + 1}: no command is before {SEPARATOR}")
    if lines[at + 1 : at + 2] != [SEPARATOR]:
        raise StoryError(
            f"{name}:{at + 1}: the line after the command {lines[at]!r} is not {SEPARATOR}"
        )
    end = begin = at + 2
    while end < len(lines) and lines[end]:
        if lines[end] == SEPARATOR:
            raise StoryError(
                f"{name}:{end}: no empty line is before the command {lines[end - 1]!r}"
            )
        end += 1
    return Step(line=at + 1, command=lines[at], answer=range(begin, end))


def _bound(name: str, command: Command, words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Match words with the parameters of a command: `NAME=VALUE` are those that have a name."""
    parameters = signature(command).parameters
    types = get_annotations(getattr(command, "__func__", command), eval_str=True)
    named = {key for key, each in parameters.items() if each.kind is Parameter.KEYWORD_ONLY}
    places = [key for key in parameters if key not in named]
    given: list[Any] = []
    found: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key in named:
            found[key] = _value(key, types[key], value)
            continue
        place = places[min(len(given), len(places) - 1)] if places else None
        is_rest = place and parameters[place].kind is Parameter.VAR_POSITIONAL
        if place is None or not (is_rest or len(given) < len(places)):
            raise StoryError(f"{word!r} is too much: {usage(name, command)}")
        given.append(_value(place, types[place], word))
    try:
        signature(command).bind(*given, **found)
    except TypeError as error:
        raise StoryError(f"{error}: {usage(name, command)}") from error
    return given, found


def _value(name: str, wanted: object, text: str) -> Any:
    if wanted is Milliseconds:
        found = re.fullmatch(r"(\d+)([a-z]+)", text)
        if found is None or found[2] not in UNITS:
            raise StoryError(f"{name} is a time such as 3s, not {text!r}")
        return Milliseconds(int(found[1]) * UNITS[found[2]])
    if wanted is int:
        try:
            return int(text)
        except ValueError:
            raise StoryError(f"{name} is a number, not {text!r}") from None
    if wanted == tuple[str, ...]:
        return tuple(filter(None, text.split(",")))
    assert wanted is str, f"no value of a command is a {wanted}"
    return text
