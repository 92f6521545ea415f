"""Reads the API tokens of a user; for managers of tokens, those of all users."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from brokers.controlplane import selectors as cluster_selectors
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from console.queries.users import KINDS, Choice
from gateway.access import token_selectors
from gateway.access.grants import ANY, Grant, Rights
from gateway.access.operations import OPERATIONS, Operation
from gateway.access.token_scopes import NAMED, SCOPES, Scope, grants_of
from gateway.access.token_selectors import TokenState, TokenSummary

# Rights that a row of the list has room for; the others are counted.
SHOWN_RIGHTS: Final = 4
# The CSS class of the mark and the word of a state.
STATES: Final = {
    TokenState.VALID: ("ok", "Valid"),
    TokenState.EXPIRED: ("stale", "Expired"),
    TokenState.REVOKED: ("stale", "Revoked"),
    TokenState.DISABLED: ("warn", "Owner disabled"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    number: int
    name: str
    prefix: str
    mark: str
    word: str
    rights: tuple[str, ...]
    more_rights: int
    made_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    last_address: str
    is_valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    frame: Frame
    sees_all: bool = False
    rows: tuple[TokenRow, ...] = ()
    valid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPage:
    """A token to revoke, or the choices of a form for a new one."""

    frame: Frame
    token: TokenRow | None = None
    clusters: tuple[Choice, ...] = ()
    scopes: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The user of the page and their rights."""

    user_id: int
    rights: Rights

    @property
    def owner_id(self) -> int | None:
        """Return whose tokens the user may see and revoke; None for all."""
        return None if self.rights.allows_somewhere(Operation.MANAGE_TOKENS) else self.user_id


def tokens(asking: Asking) -> Reading[Tokens]:
    return last_good.read(
        ("tokens", asking.owner_id, asking.user_id, asking.rights.grants),
        lambda: _tokens(asking),
        is_empty=lambda data: not data.rows,
    )


def token_page(asking: Asking, number: int | None) -> Reading[TokenPage]:
    """Return a token that the user may revoke; None stands for a new one."""
    return last_good.read(
        ("token", number, asking.owner_id, asking.user_id, asking.rights.grants),
        lambda: _token_page(asking, number),
        is_empty=lambda data: number is not None and data.token is None,
    )


def in_words(grants: Iterable[Grant]) -> list[str]:
    """Return rights by their scopes, as they were chosen; a right of no scope stays as it is."""
    left = dict.fromkeys(grants)
    found: dict[str, None] = {}
    covered: set[Grant] = set()
    for scope in NAMED:
        for grant in left:
            whole = whole_of(scope, grant, left)
            covered.update(whole)
            if whole:
                where = "" if grant.cluster == ANY else " in one cluster"
                found[f"{scope.value} {grant.pattern}{where}"] = None
    return [*found, *(_short(grant) for grant in left if grant not in covered)]


def whole_of(scope: Scope, grant: Grant, among: Container[Grant]) -> tuple[Grant, ...]:
    """Return the rights of a scope on a grant's names, if the grant and all of them are present."""
    whole = grants_of(scope, grant.pattern, cluster=grant.cluster)
    is_whole = grant in whole and all(one in among for one in whole)
    return whole if is_whole else ()


def _tokens(asking: Asking) -> Tokens:
    rows = tuple(_row(token) for token in token_selectors.tokens(owner_id=asking.owner_id))
    return Tokens(
        frame=frame(None, asking.rights),
        sees_all=asking.owner_id is None,
        # Ended tokens only matter to readers who look for them, so they come last.
        rows=tuple(sorted(rows, key=lambda row: not row.is_valid)),
        valid=sum(row.is_valid for row in rows),
    )


def _token_page(asking: Asking, number: int | None) -> TokenPage:
    found = None if number is None else token_selectors.token(number, owner_id=asking.owner_id)
    return TokenPage(
        frame=frame(None, asking.rights),
        token=None if found is None else _row(found),
        clusters=(
            Choice(value=ANY, label="all clusters"),
            *(Choice(value=c.cluster_id, label=c.name) for c in cluster_selectors.clusters()),
        ),
        scopes=tuple(
            Choice(value=scope.value, label=scope.value, sentence=SCOPES[scope].sentence)
            for scope in Scope
        ),
    )


def _row(token: TokenSummary) -> TokenRow:
    mark, word = STATES[token.state]
    rights = in_words(token.grants)
    return TokenRow(
        number=token.number,
        name=token.name,
        prefix=token.prefix,
        mark=mark,
        word=word,
        rights=tuple(rights[:SHOWN_RIGHTS]),
        more_rights=max(0, len(rights) - SHOWN_RIGHTS),
        made_by=token.created_by,
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        last_address=token.last_address,
        is_valid=token.state is TokenState.VALID,
    )


def _short(grant: Grant) -> str:
    if grant.role is not None:
        return grant.role.value
    assert grant.operation is not None, "a grant has one of both"
    kind = "" if grant.kind is None else f" {KINDS[grant.kind]}"
    where = "" if grant.cluster == ANY else " in one cluster"
    names = "" if grant.pattern == ANY else f" {grant.pattern}"
    return f"{OPERATIONS[grant.operation].verb}:{kind}{names}{where}"
