"""Reads the users of the console, their rights and their sessions."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from brokers.controlplane import selectors as cluster_selectors
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from gateway.access import selectors, token_selectors
from gateway.access.grants import ANY, Grant, Rights
from gateway.access.operations import OPERATIONS, ROLES, Kind, Operation, Role
from gateway.access.selectors import OpenSession, UserSummary
from gateway.access.token_selectors import TokenState

# The length limit of a user name.
MAX_FILTER: Final = 150
# Rights that a row of the list has room for; the others are counted.
SHOWN_RIGHTS: Final = 3
# Names in user agents; the first match wins, because most browsers and systems also claim to be the
# ones below.
BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
KINDS: Final = {
    Kind.CONSOLE: "console",
    Kind.CLUSTER: "cluster",
    Kind.TOPIC: "topics",
    Kind.GROUP: "groups",
    Kind.CONNECTOR: "connectors",
    Kind.SECRET: "secrets",
    Kind.FILE: "files",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    number: int
    what: str
    is_role: bool
    sentence: str
    cluster: str
    on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    browser: str
    agent: str
    address: str
    started_at: datetime
    active_at: datetime
    ends_at: datetime
    is_this: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRow:
    number: int
    name: str
    rights: tuple[str, ...]
    more_rights: int
    last_login: datetime | None
    sessions: int
    is_enabled: bool
    state: str  # the CSS class of the mark: ok, warn or stale
    word: str
    is_self: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    frame: Frame
    filter: str = ""
    rows: tuple[UserRow, ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One option of a select: the sent value, the label and a sentence about it."""

    value: str
    label: str
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPage:
    frame: Frame
    user: UserRow | None = None
    grants: tuple[GrantRow, ...] = ()
    sessions: tuple[SessionRow, ...] = ()
    # The names of the user's API tokens that are valid.
    tokens: tuple[str, ...] = ()
    roles: tuple[Choice, ...] = ()
    operations: tuple[Choice, ...] = ()
    clusters: tuple[Choice, ...] = ()
    kinds: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The user of the page: their rights, name and session key."""

    rights: Rights
    name: str
    session_key: str | None = None


def users(asking: Asking, contains: str) -> Reading[Users]:
    # No name holds a NUL, and PostgreSQL rejects a query with one.
    contains = contains.replace("\0", "").strip()[:MAX_FILTER]
    return last_good.read(
        ("users", contains, asking.name, asking.rights.grants),
        lambda: _users(asking, contains),
        is_empty=lambda data: not data.rows,
    )


def user_page(asking: Asking, number: int | None) -> Reading[UserPage]:
    """Return a user with rights, sessions and the choices of a form; None stands for a new user."""
    return last_good.read(
        ("user", number, asking.name, asking.rights.grants),
        lambda: _user_page(asking, number),
        is_empty=lambda data: number is not None and data.user is None,
    )


def browser_of(agent: str) -> str:
    """Return the browser and system of a user agent; an unknown agent unchanged."""
    browser = next((name for mark, name in BROWSERS if mark in agent), "")
    system = next((name for mark, name in SYSTEMS if mark in agent), "")
    if browser and system:
        return f"{browser} on {system}"
    first = re.split(r"[\s/]", agent, maxsplit=1)[0][:30]
    return browser or system or first or "unknown"


def _users(asking: Asking, contains: str) -> Users:
    return Users(
        frame=frame(None, asking.rights),
        filter=contains,
        rows=tuple(_row(user, asking) for user in selectors.users(contains=contains)),
        total=selectors.user_count(),
    )


def _user_page(asking: Asking, number: int | None) -> UserPage:
    around = frame(None, asking.rights)
    found = None if number is None else selectors.user(number)
    named = {c.cluster_id: c.name for c in cluster_selectors.clusters()}
    return UserPage(
        frame=around,
        user=None if found is None else _row(found, asking),
        grants=()
        if found is None
        else tuple(_grant_row(given.number, given.grant, named) for given in found.grants),
        sessions=()
        if found is None
        else tuple(_session_row(s, asking) for s in selectors.open_sessions(found.number)),
        tokens=() if found is None else _valid_tokens(found.number),
        roles=tuple(
            Choice(value=f"role:{role.value}", label=role.value, sentence=ROLES[role].sentence)
            for role in Role
        ),
        operations=tuple(
            Choice(
                value=f"operation:{operation.value}",
                label=OPERATIONS[operation].verb,
                sentence=OPERATIONS[operation].sentence,
            )
            for operation in Operation
        ),
        clusters=(
            Choice(value=ANY, label="all clusters"),
            *(Choice(value=number, label=name) for number, name in named.items()),
        ),
        kinds=(
            Choice(value="", label="everything"),
            *(Choice(value=kind.value, label=KINDS[kind]) for kind in Kind),
        ),
    )


def _valid_tokens(user_id: int) -> tuple[str, ...]:
    owned = token_selectors.tokens(owner_id=user_id)
    return tuple(token.name for token in owned if token.state is TokenState.VALID)


def _row(user: UserSummary, asking: Asking) -> UserRow:
    state, word = ("ok", "Enabled") if user.is_enabled else ("stale", "Disabled")
    if user.is_enabled and user.must_change_password:
        state, word = "warn", "Must change password"
    elif user.is_enabled and not user.grants:
        state, word = "warn", "Without rights"
    rights = [_short(given.grant) for given in user.grants]
    return UserRow(
        number=user.number,
        name=user.name,
        rights=tuple(rights[:SHOWN_RIGHTS]),
        more_rights=max(0, len(rights) - SHOWN_RIGHTS),
        last_login=user.last_login,
        sessions=user.sessions,
        is_enabled=user.is_enabled,
        state=state,
        word=word,
        is_self=user.name == asking.name,
    )


def _short(grant: Grant) -> str:
    """Return a grant as a tag: the role alone if it applies to everything."""
    what = _what(grant)
    if grant.is_unlimited:
        return what
    where = [] if grant.kind is None else [KINDS[grant.kind]]
    where += [] if grant.pattern == ANY else [grant.pattern]
    where += [] if grant.cluster == ANY else ["in one cluster"]
    return f"{what}: {' '.join(where)}"


def _what(grant: Grant) -> str:
    if grant.role is not None:
        return grant.role.value
    assert grant.operation is not None, "a grant has one of both"
    return OPERATIONS[grant.operation].verb


def _grant_row(number: int, grant: Grant, clusters: dict[str, str]) -> GrantRow:
    sentence = (
        ROLES[grant.role].sentence
        if grant.role is not None
        else " ".join(OPERATIONS[operation].sentence for operation in grant.operations)
    )
    names = "all" if grant.pattern == ANY else grant.pattern
    return GrantRow(
        number=number,
        what=_what(grant),
        is_role=grant.role is not None,
        sentence=sentence,
        cluster="all clusters"
        if grant.cluster == ANY
        else clusters.get(grant.cluster, grant.cluster),
        on="everything" if grant.kind is None else f"{KINDS[grant.kind]}: {names}",
    )


def _session_row(session: OpenSession, asking: Asking) -> SessionRow:
    return SessionRow(
        browser=browser_of(session.agent),
        agent=session.agent,
        address=session.address,
        started_at=session.started_at,
        active_at=session.active_at,
        ends_at=session.ends_at,
        is_this=selectors.is_session(asking.session_key, session.digest),
    )
