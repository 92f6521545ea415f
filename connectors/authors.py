"""The authors on whose rights a connector runs: stored with its config, and checked while it runs.

A connector acts with the rights of the home, so it must stop when its author loses a right that it
needs. Claims are stored when a config is written, since only then the author of each part is known.
To check them needs a lookup only: it opens no config and loads no plugin.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from connectors import needed_rights, secret_rights
from connectors.sdk.connector import Connector
from gateway.access import selectors, token_selectors
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import FULL_ADMIN, Rights
from gateway.access.operations import Kind, Operation
from gateway.access.token_selectors import TokenState

USER: Final = "user"
TOKEN: Final = "token"  # noqa: S105 - a word
# The owner of the home: everything below it is theirs.
HOST: Final = "host"
# An expired token authenticates nothing new; connectors created with it keep running as long as its
# owner has the rights.
STANDING: Final = frozenset({TokenState.VALID, TokenState.EXPIRED})
GONE: Final = {USER: "disabled or deleted", TOKEN: "revoked or deleted, or its owner is disabled"}
ADVICE: Final = (
    "give it that right and restart the connector, or have a user with the right send the config"
    " again unchanged"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The author of a config. The number distinguishes later users of the same name."""

    kind: str
    name: str
    number: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One right that a config needs, and whose right it was when the config was written."""

    author: Author
    operation: Operation
    pattern: str

    @property
    def kind(self) -> Kind:
        return needed_rights.kind_of(self.operation)


class Known:
    """A cache of authors' rights, for one check, since rights change."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._rights: dict[Author, Rights | None] = {}

    def lost(self, stored: object) -> str:
        """Return the lost right of stored claims, with what to do; nothing if all hold."""
        for claim in _read(stored):
            if claim.author not in self._rights:
                self._rights[claim.author] = _rights_of(claim.author)
            rights = self._rights[claim.author]
            if rights is None:
                return (
                    f"The connector runs with the rights of {claim.author}, which is"
                    f" {GONE[claim.author.kind]}: have a user who may {_spoken(claim)} send the"
                    " config again unchanged"
                )
            names = rights.names(claim.operation, cluster=self._cluster, kind=claim.kind)
            if not needed_rights.covers(names, claim.pattern):
                return (
                    f"The connector runs with the rights of {claim.author}, which may not"
                    f" {_spoken(claim)}: {ADVICE}"
                )
        return ""


def creation_refusal(cluster: str, stored: object, topic: str) -> str:
    """Return why the author of stored claims may not create a topic; nothing if they may.

    Claims on topics have one author; those of an older release have none, who may.
    """
    writing = [claim for claim in _read(stored) if claim.operation is Operation.PRODUCE]
    if not writing:
        return ""
    author = writing[0].author
    rights = _rights_of(author) or Rights()
    if topic in rights.names(Operation.CREATE_TOPICS, cluster=cluster, kind=Kind.TOPIC):
        return ""
    return (
        f"topic {topic} does not exist, and {author}, with whose rights the connector runs, may not"
        " create it: create the topic or give that right, and restart the connector"
    )


def claims(
    caller: Caller,
    cluster: str,
    plugin: type[Connector],
    config: Mapping[str, str],
    former: object,
) -> list[dict[str, Any]]:
    """Return the claims to store with a config: the caller's, and those of earlier authors.

    The caller's rights were checked before. `former` are the claims of the stored config; a kept
    secret keeps its author.
    """
    author = _author_of(caller)
    found = [
        Claim(author=author, operation=need.operation, pattern=need.pattern)
        for need in needed_rights.needs(plugin, config)
    ]
    allowed = caller.rights.names(Operation.USE_SECRETS, cluster=cluster, kind=Kind.SECRET)
    earlier = [claim for claim in _read(former) if claim.kind is Kind.SECRET]
    for name in secret_rights.names_in(config):
        if name in allowed:
            found.append(Claim(author=author, operation=Operation.USE_SECRETS, pattern=name))
        else:
            found += [claim for claim in earlier if claim.pattern == name]
    return [_stored(claim) for claim in dict.fromkeys(found)]


def _author_of(caller: Caller) -> Author:
    if caller.kind is CallerKind.TOKEN:
        return Author(kind=TOKEN, name=caller.name, number=caller.number)
    if caller.kind is CallerKind.HOST:
        return Author(kind=HOST, name=caller.name)
    return Author(kind=USER, name=caller.name, number=selectors.number_of(caller.name))


def _rights_of(author: Author) -> Rights | None:
    """Return the current rights of an author; None if deleted, disabled or revoked."""
    if author.kind == HOST:
        return Rights([FULL_ADMIN])
    if author.number is None:
        return None
    if author.kind == USER:
        return selectors.rights_of_enabled(author.number)
    found = token_selectors.by_number(author.number)
    return None if found is None or found.state not in STANDING else found.rights


def _spoken(claim: Claim) -> str:
    on = "all names" if claim.pattern == "*" else claim.pattern
    return needed_rights.in_words(claim.operation, f"{claim.kind.value} {on}")


def _stored(claim: Claim) -> dict[str, Any]:
    author = claim.author
    return {
        "kind": author.kind,
        "name": author.name,
        "number": author.number,
        "operation": claim.operation.value,
        "pattern": claim.pattern,
    }


def _read(stored: object) -> Iterator[Claim]:
    """Parse stored claims; rows of an older release have none.

    Words of a newer release are skipped, as in grants.
    """
    rows: Iterable[Any] = stored if isinstance(stored, list) else ()
    for row in rows:
        with suppress(KeyError, ValueError):
            yield Claim(
                author=Author(kind=row["kind"], name=row["name"], number=row["number"]),
                operation=Operation(row["operation"]),
                pattern=row["pattern"],
            )
