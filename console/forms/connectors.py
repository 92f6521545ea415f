"""Parses a connector form into a config: fields, lines of other keys, JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from django.http import QueryDict

from connectors.drafts import shown_of

# The prefix of a key in the name of its field.
PREFIX: Final = "key-"
MASK: Final = "[hidden]"
# Rows for keys that the plugin does not define: some initially, more on demand. A Django form has
# at most a thousand fields; larger configs need the command line.
FIRST_ROWS: Final = 2
MORE_ROWS: Final = 3
MAX_ROWS: Final = 200
Place = dict[str, Any]
# Characters of a text that an error message repeats.
SHOWN: Final = 60
# The fields that Kafka Connect's REST expects around a config.
AROUND: Final = frozenset({"name", "config"})


class Unreadable(Exception):
    """The input is no config; the text says why, and where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A config as typed, and the errors in its lines."""

    config: Mapping[str, str] = field(repr=False)
    wrong: str = ""


def config_of(post: QueryDict, held: Mapping[str, str]) -> Typed:
    """Return the config in the fields. `held` has the secrets that were typed before, by key."""
    config: dict[str, str] = {}
    for name in post:
        if name.startswith(PREFIX) and (text := _lines_of(post.get(name, ""))):
            config[name.removeprefix(PREFIX)] = text
    dropped = set(post.getlist("drop"))
    for key in post.getlist("held"):
        if key not in dropped:
            config.setdefault(key, MASK)
    wrong = ""
    pairs = zip(post.getlist("other-key"), post.getlist("other-value"), strict=False)
    for key, value in ((key.strip(), _lines_of(value)) for key, value in pairs):
        if not key and value:
            wrong = f"“{value[:SHOWN]}” has no key: name it on the same line, or empty the line."
        elif key in config:
            wrong = f"{key[:SHOWN]} is given twice: empty its field, or its line further below."
        elif key:
            config[key] = value
    return Typed(config=_filled(config, held), wrong=wrong)


def config_from(text: str, held: Mapping[str, str]) -> dict[str, str]:
    """Return a config from JSON, bare or with its name. Raises Unreadable."""
    try:
        # Numbers keep their text.
        found = json.loads(
            text,
            object_pairs_hook=_once,
            parse_int=str,
            parse_float=str,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"line {error.lineno}, column {error.colno}: {error.msg}. Correct the JSON there."
        ) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply: a config is one object of texts.") from None
    if isinstance(found, dict) and isinstance(found.get("config"), dict) and found.keys() <= AROUND:
        name = {"name": found["name"]} if "name" in found else {}
        found = {**found["config"], **name}
    if not isinstance(found, dict):
        raise Unreadable("a config is an object: begin with { and give keys with their values.")
    return _filled({key: _text(key, value) for key, value in found.items()}, held)


def offsets_from(text: str) -> list[tuple[Place, Place | None]]:
    """Return partitions and offsets in the JSON format of the REST interface. Raises Unreadable."""
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"line {error.lineno}, column {error.colno}: {error.msg}. Correct the JSON there."
        ) from None
    except (ValueError, RecursionError):
        raise Unreadable("a number in it is too long, or it is nested too deeply.") from None
    listed = found.get("offsets") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise Unreadable('it is not a list of offsets: give {"offsets": [\u2026]}.')
    pairs = []
    for number, one in enumerate(listed, 1):
        place = one.get("partition") if isinstance(one, dict) else None
        offset = one.get("offset") if isinstance(one, dict) else None
        if not isinstance(place, dict) or not isinstance(offset, dict | None):
            raise Unreadable(
                f'entry {number} needs "partition", an object, and "offset", an object or null.'
            )
        pairs.append((place, offset))
    return pairs


def _filled(config: Mapping[str, str], held: Mapping[str, str]) -> dict[str, str]:
    """Replace the masks of secrets typed before; other masks stand for stored values."""
    return {
        key: held[key] if key in held and text.strip() == shown_of(held[key]) else text
        for key, text in config.items()
    }


def _lines_of(text: str) -> str:
    # Browsers end lines with CR LF.
    return text.replace("\r\n", "\n")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise Unreadable(f"{twice[:SHOWN]} is given twice: keep one of them.")
    return found


def _no_constant(word: str) -> NoReturn:
    raise Unreadable(f"{word} is not a JSON value: put it into quotes.")


def _text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if value is None:
        raise Unreadable(f"{key[:SHOWN]} is null: leave the key out, or give a text.")
    raise Unreadable(f"{key[:SHOWN]} is a list or an object: values of a config are texts.")
