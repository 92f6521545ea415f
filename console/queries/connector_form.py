"""Lays out a draft of a new connector in sections, with the choices that exist."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from brokers.controlplane import selectors as controlplane
from connectors import selectors
from connectors.drafts import CLASS, NAME, Draft, Field
from connectors.selectors import BrokenPlugin, Plugin
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from console.queries.topics import visible
from gateway.access.grants import Rights

# More than a user reads; other topic names can still be typed.
MAX_TOPICS: Final = 300
# Groups for parts that the config itself names; their fields are shown unfolded.
OF_PARTS: Final = ("Transforms: ", "Predicates: ")
# Groups that Kafka Connect names after a key, and their titles in the form.
TITLES: Final[Mapping[str, str]] = {"offsets.topic": "Offsets Topic"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    frame: Frame
    sources: tuple[Plugin, ...] = ()
    sinks: tuple[Plugin, ...] = ()
    broken: tuple[BrokenPlugin, ...] = ()

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        return (*self.sources, *self.sinks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One group of a form: the fields shown first, and the folded ones."""

    name: str
    first: tuple[Field, ...]
    folded: tuple[Field, ...]

    @property
    def folded_errors(self) -> int:
        return sum(bool(field.errors) for field in self.folded)

    @property
    def folded_values(self) -> int:
        return sum(bool(field.value or field.is_held) for field in self.folded)


def catalogue(cluster_id: str | None, rights: Rights) -> Reading[Catalogue]:
    return last_good.read(
        ("connector-catalogue", cluster_id, rights.grants),
        lambda: _read(cluster_id, rights),
        is_empty=lambda data: not data.plugins,
    )


def sections_of(draft: Draft) -> list[Section]:
    """Return the fields of a draft by group, without the class and irrelevant fields."""
    groups: dict[str, list[Field]] = {}
    for field in draft.fields:
        is_used = bool(field.value or field.is_held or field.errors)
        if field.name != CLASS and (field.is_visible or is_used):
            groups.setdefault(field.group, []).append(field)
    return [_section(name, fields) for name, fields in groups.items()]


def topics_to_name(cluster_id: str, rights: Rights) -> list[str]:
    """Return topics to offer in a form: those that the user may see, without internal ones."""
    names = controlplane.topic_names(
        cluster_id=cluster_id, contains="", within=visible(rights, cluster_id), limit=MAX_TOPICS
    )
    return [name for name in names if not name.startswith("__")]


def json_of(config: Mapping[str, str]) -> str:
    return json.dumps(dict(sorted(config.items())), indent=2, ensure_ascii=False)


def _read(cluster_id: str | None, rights: Rights) -> Catalogue:
    found = selectors.catalogue()
    return Catalogue(
        frame=frame(cluster_id, rights),
        sources=_by_title(plugin for plugin in found if plugin.kind == "source"),
        sinks=_by_title(plugin for plugin in found if plugin.kind == "sink"),
        broken=tuple(selectors.broken_plugins()),
    )


def _by_title(plugins: Iterable[Plugin]) -> tuple[Plugin, ...]:
    return tuple(sorted(plugins, key=lambda plugin: (plugin.title.casefold(), plugin.name)))


def _section(name: str, fields: list[Field]) -> Section:
    is_part = name.startswith(OF_PARTS)
    first = [field for field in fields if field.is_high or field.is_required or is_part]
    # Put the name first, and fields without a default before those with one.
    first.sort(key=lambda field: (field.name != NAME, not field.is_required))
    return Section(
        name=TITLES.get(name, name),
        first=tuple(first),
        folded=tuple(field for field in fields if field not in first),
    )
