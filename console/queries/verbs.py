"""Finds what a user can do, for the search box: "tail orders", "restart broker 2".

Each verb leads to a page; none changes anything. A verb is typed before the name that it is about,
or behind it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from console import group_names
from console.queries.links import link
from gateway.access.grants import Resource, Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka import shown_names

# Names that one verb offers.
MAX_NAMES: Final = 5
# A shorter word is the beginning of too many.
MIN_CHARS: Final = 3
FILLERS: Final = frozenset({"of", "in", "into", "to", "from", "for", "on", "the"})


class About(Enum):
    """What a verb is about, with its word, and the page that lists it."""

    NOTHING = ("", "")
    NEW_TOPIC = ("topic", "")
    TOPIC = ("topic", "topics")
    GROUP = ("group", "groups")
    CONNECTOR = ("connector", "connectors")
    BROKER = ("broker", "brokers")

    @property
    def word(self) -> str:
        return self.value[0]

    @property
    def page(self) -> str:
        return self.value[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    text: str
    link: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """`says` ends in the name that it is about, or has none."""

    phrases: tuple[str, ...]
    says: str
    page: str
    about: About = About.NOTHING
    operation: Operation = Operation.VIEW
    asked: Mapping[str, str] = field(default_factory=dict)


VERBS: Final = (
    Verb(
        phrases=("create topic", "new topic", "add topic"),
        says="Create topic",
        page="new-topic",
        about=About.NEW_TOPIC,
        operation=Operation.CREATE_TOPICS,
    ),
    Verb(
        phrases=("messages", "records", "read"),
        says="Messages of",
        page="topic-messages",
        about=About.TOPIC,
        operation=Operation.READ_PAYLOADS,
    ),
    Verb(
        phrases=("tail", "live tail"),
        says="Tail",
        page="topic-messages",
        about=About.TOPIC,
        operation=Operation.READ_PAYLOADS,
        asked={"mode": "tail"},
    ),
    Verb(
        phrases=("produce", "write", "send"),
        says="Produce into",
        page="produce",
        about=About.TOPIC,
        operation=Operation.PRODUCE,
    ),
    Verb(
        phrases=("configs", "edit configs", "edit topic", "retention"),
        says="Edit configs of",
        page="edit-topic",
        about=About.TOPIC,
        operation=Operation.ALTER_CONFIGS,
    ),
    Verb(
        phrases=("add partitions", "partitions"),
        says="Add partitions to",
        page="add-partitions",
        about=About.TOPIC,
        operation=Operation.ALTER_TOPICS,
    ),
    Verb(
        phrases=("delete topic",),
        says="Delete topic",
        page="delete-topic",
        about=About.TOPIC,
        operation=Operation.DELETE_TOPICS,
    ),
    Verb(
        phrases=("reset offsets", "reset group", "reset"),
        says="Reset offsets of",
        page="reset-offsets",
        about=About.GROUP,
        operation=Operation.RESET_GROUPS,
    ),
    Verb(
        phrases=("delete group",),
        says="Delete group",
        page="delete-group",
        about=About.GROUP,
        operation=Operation.DELETE_GROUPS,
    ),
    Verb(
        phrases=("create connector", "new connector"),
        says="Create connector",
        page="connector-catalogue",
        operation=Operation.CREATE_CONNECTORS,
    ),
    Verb(
        phrases=("dead letters", "letters", "redrive"),
        says="Dead letters of",
        page="dead-letters",
        about=About.CONNECTOR,
    ),
    *(
        Verb(
            phrases=(f"{verb} broker", verb),
            says=f"{verb.capitalize()} broker",
            page=f"{verb}-broker",
            about=About.BROKER,
            operation=Operation.MANAGE_BROKERS,
        )
        for verb in ("restart", "stop", "start")
    ),
    *(
        Verb(
            phrases=(f"changes {day}", f"what changed {day}", day),
            says=f"Changes of {day}",
            page="changes",
            operation=Operation.VIEW_AUDIT,
            asked={"period": day},
        )
        for day in ("today", "yesterday")
    ),
    Verb(phrases=("create token", "new token"), says="Create token", page="new-token"),
    Verb(
        phrases=("create user", "new user"),
        says="Create user",
        page="new-user",
        operation=Operation.MANAGE_USERS,
    ),
)
KINDS: Final = {
    About.TOPIC: Kind.TOPIC,
    About.GROUP: Kind.GROUP,
    About.CONNECTOR: Kind.CONNECTOR,
}
# The best names for a part of one.
Finders = Mapping[About, Callable[[str], Iterable[str]]]


def actions(wanted: str, cluster_id: str, rights: Rights, finders: Finders) -> Iterator[Hit]:
    """Yield what a text may mean; every verb for an empty text, as help."""
    for verb in VERBS:
        name = _named(verb, wanted)
        if name is not None and rights.allows_somewhere(verb.operation):
            yield from _hits(verb, name, cluster_id, rights, finders)


def _named(verb: Verb, wanted: str) -> str | None:
    """Return the name in a text that means the verb, or an empty one; None if it does not."""
    words = wanted.split()
    if not words:
        return ""
    folded = [word.casefold() for word in words]
    for phrase in (phrase.split() for phrase in verb.phrases):
        size = len(phrase)
        if folded[:size] == phrase:
            return _without_fillers(verb, words[size:])
        if verb.about is not About.NOTHING and size < len(words) and folded[-size:] == phrase:
            return _without_fillers(verb, words[:-size])
        # The words so far, of which the last one may be unfinished.
        begun = " ".join(phrase).startswith(" ".join(folded))
        if begun and len(wanted.strip()) >= MIN_CHARS:
            return ""
    return None


def _without_fillers(verb: Verb, words: list[str]) -> str:
    while words and words[0].casefold() in FILLERS | {verb.about.word}:
        words = words[1:]
    return " ".join(words)


def _hits(
    verb: Verb, name: str, cluster_id: str, rights: Rights, finders: Finders
) -> Iterator[Hit]:
    match verb.about:
        case About.NOTHING:
            if not name:
                yield Hit(text=verb.says, link=link(verb.page, cluster_id, **verb.asked))
        case About.NEW_TOPIC:
            asked = {"name": name} if name else {}
            text = f"{verb.says} {name}".strip()
            yield Hit(text=text, link=link(verb.page, cluster_id, **asked))
        case _ if not name and verb.about is not About.BROKER:
            detail = f"then the name of a {verb.about.word}"
            yield Hit(text=f"{verb.says} …", link=link(verb.about.page, cluster_id), detail=detail)
        case _:
            names = finders[verb.about](name)
            allowed = [each for each in names if _may(verb, each, cluster_id, rights)]
            for each in allowed[:MAX_NAMES]:
                text = f"{verb.says} {shown_names.shown(each)}"
                yield Hit(text=text, link=_link(verb, each, cluster_id))


def _may(verb: Verb, name: str, cluster_id: str, rights: Rights) -> bool:
    if verb.about is About.BROKER:
        return rights.allows(verb.operation, Resource(kind=Kind.CLUSTER, cluster=cluster_id))
    kind = KINDS[verb.about]
    return rights.allows(verb.operation, Resource(kind=kind, cluster=cluster_id, name=name))


def _link(verb: Verb, name: str, cluster_id: str) -> str:
    if verb.about is About.GROUP:
        return group_names.link(cluster_id, name, verb.page)
    return link(verb.page, cluster_id, name, **verb.asked)
