"""Upon whose rights a connector rests: noted with its config, and looked at while it runs.

A connector acts with the rights of the home, so what its author may no longer do, it must not go
on doing in their place. Claims are noted when a config is written, since only then it is known who
wrote which part; whether they still hold is a lookup that opens no config and loads no plugin.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from connectors import secret_rights, topic_rights
from connectors.sdk.connector import Connector
from gateway.access import selectors, token_selectors
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.access.operations import OPERATIONS, Kind, Operation
from gateway.access.token_selectors import TokenState

USER: Final = "user"
TOKEN: Final = "token"  # noqa: S105 - a word
# A token that has reached its end is a key that opens nothing new; what it was used for stays, as
# long as its owner may do it.
STANDING: Final = frozenset({TokenState.VALID, TokenState.EXPIRED})
GONE: Final = {USER: "disabled or gone", TOKEN: "revoked or gone, or its owner is disabled"}
ADVICE: Final = (
    "give that right back and restart the connector, or have somebody who has it send the config"
    " again, as it is"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who wrote a config. The number tells them from others that have the name later."""

    kind: str
    name: str
    number: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One right that a config needs, and its author when it was written."""

    author: Author
    operation: Operation
    pattern: str

    @property
    def kind(self) -> Kind:
        return Kind.SECRET if self.operation is Operation.USE_SECRETS else Kind.TOPIC


class Known:
    """Rights of authors, each asked for once. For one look, since rights change."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._rights: dict[Author, Rights | None] = {}

    def lost(self, stored: object) -> str:
        """Return which right of stored claims is gone, with what to do; nothing where all hold."""
        for claim in _read(stored):
            if claim.author not in self._rights:
                self._rights[claim.author] = _rights_of(claim.author)
            rights = self._rights[claim.author]
            if rights is None:
                return (
                    f"The {claim.author}, on whose rights this connector rests, is"
                    f" {GONE[claim.author.kind]}: have somebody who may {_spoken(claim)} send the"
                    " config again, as it is"
                )
            names = rights.names(claim.operation, cluster=self._cluster, kind=claim.kind)
            if not topic_rights.covers(names, claim.pattern):
                return (
                    f"The {claim.author}, on whose rights this connector rests, may not"
                    f" {_spoken(claim)} any more: {ADVICE}"
                )
        return ""


def claims(
    caller: Caller,
    cluster: str,
    plugin: type[Connector],
    config: Mapping[str, str],
    former: object,
) -> list[dict[str, Any]]:
    """Return what a config rests upon, to be stored: what the caller may, and others before them.

    The caller was asked for the rights; `former` are the stored claims of the config before, whose
    secrets stay those of who put them in.
    """
    author = _author_of(caller)
    found = [
        Claim(author=author, operation=need.operation, pattern=need.pattern)
        for need in topic_rights.needs(plugin, config)
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
    return Author(kind=USER, name=caller.name, number=selectors.number_of(caller.name))


def _rights_of(author: Author) -> Rights | None:
    """Return what an author may do now; None for one that is gone, or may do nothing at all."""
    if author.number is None:
        return None
    if author.kind == USER:
        return selectors.rights_of_enabled(author.number)
    found = token_selectors.by_number(author.number)
    return None if found is None or found.state not in STANDING else found.rights


def _spoken(claim: Claim) -> str:
    on = "all names" if claim.pattern == "*" else claim.pattern
    return f"{OPERATIONS[claim.operation].verb} on {claim.kind.value} {on}"


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
    """Yield claims as they are stored; rows of an older release have none.

    Words of a newer one are passed over, as with grants.
    """
    rows: Iterable[Any] = stored if isinstance(stored, list) else ()
    for row in rows:
        with suppress(KeyError, ValueError):
            yield Claim(
                author=Author(kind=row["kind"], name=row["name"], number=row["number"]),
                operation=Operation(row["operation"]),
                pattern=row["pattern"],
            )
