"""The dead letters chosen in a form, and their destination."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypedDict
from urllib.parse import urlencode

from django.http import QueryDict

from connectors.redrives import MAX_PICKED, Asked
from connectors.runtime.letters import Destination
from gateway.kafka.values import Span

MAX_WORD_CHARS: Final = 500
MAX_PARTITIONS: Final = 1000
CHOSEN: Final = "chosen"


class Unreadable(Exception):
    """The form is invalid; the text says why."""


class Words(TypedDict):
    exception: str
    stage: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which letters a page shows."""

    exception: str = ""
    stage: str = ""
    # The id of a cause.
    cause: str = ""
    before: Mapping[int, int]

    @property
    def is_set(self) -> bool:
        return bool(self.exception or self.stage or self.cause)

    @property
    def chosen(self) -> Words:
        return Words(exception=self.exception, stage=self.stage, cause=self.cause)

    def url(self, *, before: str) -> str:
        """Return the query of the page with the letters before these."""
        words = ((key, str(value)) for key, value in self.chosen.items())
        return urlencode([*words, ("before", before)])


def filter_of(query: QueryDict) -> Filter:
    before = {}
    for pair in query.get("before", "").split(",")[:MAX_PARTITIONS]:
        partition, _, offset = pair.partition(":")
        if _is_number(partition) and _is_number(offset):
            before[int(partition)] = int(offset)
    return Filter(
        exception=query.get("exception", "").strip()[:MAX_WORD_CHARS],
        stage=query.get("stage", "").strip()[:MAX_WORD_CHARS],
        cause=query.get("cause", "").strip()[:MAX_WORD_CHARS],
        before=before,
    )


def asked_of(post: QueryDict) -> Asked:
    """Return the request: the ticked letters, those of a cause, or all that the filter matches."""
    found = filter_of(post)
    known = {one.value: one for one in Destination}
    destination = known.get(post.get("destination", ""), Destination.RETRY)
    if of_cause := post.get("of-cause", "").strip()[:MAX_WORD_CHARS]:
        return Asked(destination=destination, cause=of_cause)
    if post.get("what") == CHOSEN:
        return Asked(destination=destination, picked=_picked(post.getlist("letter")))
    return Asked(
        destination=destination,
        spans=_range(post),
        **found.chosen,
    )


def _picked(given: list[str]) -> frozenset[tuple[int, int]]:
    if not given:
        raise Unreadable("No letter was ticked: tick some, or send all that are shown.")
    if len(given) > MAX_PICKED:
        raise Unreadable(
            f"{len(given)} letters are selected, {MAX_PICKED} are allowed: give a range."
        )
    places = set()
    for text in given:
        partition, _, offset = text.partition("/")
        if not (_is_number(partition) and _is_number(offset)):
            raise Unreadable("The form names an invalid letter: reload the page, and tick some.")
        places.add((int(partition), int(offset)))
    return frozenset(places)


def _range(post: QueryDict) -> tuple[Span, ...]:
    """Return the range in the form; none if it is empty."""
    words = {name: post.get(name, "").strip() for name in ("partition", "from", "until")}
    if not any(words.values()):
        return ()
    for name, text in words.items():
        if text and not _is_number(text):
            raise Unreadable(f"“{text[:50]}” is not a number for {name}: give an offset.")
    return (
        Span(
            partition=int(words["partition"] or 0),
            start=int(words["from"] or 0),
            end=int(words["until"]) if words["until"] else None,
        ),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
