"""Identifies callers: a token, a console user by password, or the console's own page.

Thread-safe. Answers are cached for moments, so that a stream of calls seldom asks the database;
revoked, disabled or changed credentials take effect after KNOWN_SECONDS. Passwords are never
stored: a verified one is recognised by a hash with a key of this process.
"""

import hashlib
import hmac
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.db import Error
from django.utils import timezone

from gateway.access import (
    audit,
    login_limits,
    selectors,
    session_users,
    token_selectors,
    token_services,
)
from gateway.access.audit import Actor
from gateway.access.callers import Caller, CallerKind
from gateway.access.login_limits import Sources
from gateway.access.token_selectors import KnownToken, TokenState
from gateway.access.turns import TooBusy
from gateway.rest import cookies
from gateway.rest.codes import ApiError, Code
from gateway.rest.credentials import (
    HOW,
    Asked,
    Password,
    Token,
    not_authenticated,
    refuse_in_address,
    shown_in,
)

log: Final = logging.getLogger(__name__)
# Revoked rights stay valid this long; a stream checks as often, so it ends within five.
KNOWN_SECONDS: Final = 2.0
# If the database does not answer, known callers stay valid this long.
STALE_SECONDS: Final = 300.0
# A password is hashed again after this: once a minute costs a worker nothing.
VERIFIED_SECONDS: Final = 60.0
# Callers of one process; the least recently used one is evicted first.
MAX_REMEMBERED: Final = 10_000
# Concurrent calls with the same password check it once; there are few passwords.
LOCKS: Final = 64
# The Retry-After while too many passwords are being checked.
BUSY_SECONDS: Final = 5
WRONG: Final = "the console has no user with this name and password"
STATES: Final = {
    TokenState.EXPIRED: "the token has expired: make another one",
    TokenState.REVOKED: "the token was revoked: make another one",
    TokenState.DISABLED: "the user who made this token is disabled: ask an admin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenProof:
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProof:
    """A verified password. `fingerprint` is of the stored password, so changes are noticed."""

    number: int
    fingerprint: str
    verified_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionProof:
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    caller: Caller
    read_at: float
    expires_at: datetime | None = None


class Identity:
    """The cache of one process. `monotonic` is the clock of its expiry."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._key = secrets.token_bytes(32)
        self._remembered: OrderedDict[object, Known] = OrderedDict()
        # What was read before this may have changed.
        self._doubted_at = 0.0
        self._lock = threading.Lock()
        self._checks = [threading.Lock() for _ in range(LOCKS)]

    def key_of(self, asked: Asked) -> object:
        """Return the cache key of a call. Raises ApiError without a usable credential."""
        refuse_in_address(asked)
        match shown_in(asked.headers.get("authorization", "")):
            case Token(digest=digest):
                return TokenProof(digest=digest)
            case Password() as password:
                return self._hash_of(password)
        key = cookies.session_key(asked)
        if key:
            return SessionProof(key=key)
        why = cookies.refusal(asked) if cookies.session_of(asked) else None
        raise not_authenticated(why or f"credentials are required: {HOW}")

    def remembered(self, key: object) -> Caller | None:
        """Return the caller of a key if it was identified a moment ago."""
        known = self._recall(key, within=KNOWN_SECONDS)
        return None if known is None else known.caller

    def was_known(self, key: object) -> bool:
        """Tell whether a key identified a caller some minutes ago."""
        return self._recall(key, within=STALE_SECONDS) is not None

    def identify(self, asked: Asked) -> Caller:
        """Return the caller, from the database if necessary. Raises ApiError for an unknown one."""
        key = self.key_of(asked)
        found = self.remembered(key)
        if found is not None:
            return found
        return self._asked(key, lambda: self._find(key, asked))

    def again(self, key: object) -> Caller:
        """Return the caller of a proof as known now. Raises ApiError if it is no longer valid."""
        known = self._recall(key, within=KNOWN_SECONDS)
        if known is not None and known.read_at >= self._doubted_at:
            return known.caller
        return self._asked(key, lambda: self._look(key))

    def doubt(self) -> None:
        """Let `again` ask the database for every caller: rights may have changed."""
        self._doubted_at = self._monotonic()

    def _asked(self, key: object, question: Callable[[], Known]) -> Caller:
        """Ask the database; drop a refused caller, so that an outage does not revive it."""
        try:
            return self._remember(key, question()).caller
        except ApiError as error:
            if error.code is Code.NOT_AUTHENTICATED:
                self._forget(key)
            raise
        except Error as error:
            return self._unanswered(key, error)

    def _find(self, key: object, asked: Asked) -> Known:
        shown = shown_in(asked.headers.get("authorization", ""))
        if not isinstance(shown, Password):
            known = self._look(key)
            _note_use(known, asked.address)
            return known
        with self._checks[hash(key) % LOCKS]:
            known_before = self._recall(key, within=STALE_SECONDS)
            proof = None if known_before is None else known_before.caller.proof
            if isinstance(proof, UserProof) and self._is_verified(proof):
                return self._look(proof)
            return self._look(self._verify(shown, asked.address))

    def _look(self, proof: object) -> Known:
        match proof:
            case TokenProof(digest=digest):
                caller, expires_at = _of_token(token_selectors.by_digest(digest), proof)
            case UserProof():
                caller, expires_at = _of_user(proof), None
            case SessionProof(key=key):
                caller, expires_at = _of_session(key, proof), None
            case _:
                raise AssertionError("a caller that this module did not find")
        return Known(caller=caller, read_at=self._monotonic(), expires_at=expires_at)

    def _verify(self, shown: Password, address: str) -> UserProof:
        """Check a password, within the limits of the console's sign-in."""
        sources = Sources(address=address, account=shown.user)
        # Count before the check: guesses sent at once must not all pass.
        wait_s = login_limits.attempt(sources)
        if wait_s:
            raise ApiError(
                Code.TOO_MANY,
                f"too many passwords from this address were wrong: wait {wait_s} s, or use a token",
                retry_after_s=wait_s,
            )
        try:
            user = authenticate(username=shown.user, password=shown.password)
        except TooBusy:
            login_limits.take_back(sources)
            raise ApiError(
                Code.TOO_MANY,
                f"too many passwords are being checked: wait {BUSY_SECONDS} s, or use a token",
                retry_after_s=BUSY_SECONDS,
            ) from None
        if not isinstance(user, User):
            actor = Actor(name="nobody", address=address)
            audit.record("rest.sign_in_failed", actor=actor, subject=shown.user)
            raise not_authenticated(WRONG)
        login_limits.forget(sources)
        return UserProof(
            number=user.pk,
            fingerprint=_fingerprint(user),
            verified_at=self._monotonic(),
        )

    def _is_verified(self, proof: UserProof) -> bool:
        return self._monotonic() - proof.verified_at < VERIFIED_SECONDS

    def _hash_of(self, shown: Password) -> bytes:
        text = f"{shown.user}\0{shown.password}".encode()
        return hmac.new(self._key, text, hashlib.sha256).digest()

    def _remember(self, key: object, known: Known) -> Known:
        with self._lock:
            # Cache it by its proof too, which streams look up.
            for name in (key, known.caller.proof):
                self._remembered[name] = known
                self._remembered.move_to_end(name)
            while len(self._remembered) > MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        return known

    def _forget(self, key: object) -> None:
        with self._lock:
            known = self._remembered.pop(key, None)
            proof = key if known is None else known.caller.proof
            self._remembered.pop(proof, None)
            if isinstance(proof, UserProof):
                # A stream looks up its proof, and calls the password behind it.
                for name in [n for n, one in self._remembered.items() if _is_same(one, proof)]:
                    del self._remembered[name]

    def _recall(self, key: object, *, within: float) -> Known | None:
        with self._lock:
            known = self._remembered.get(key)
        if known is None or self._monotonic() - known.read_at >= within:
            return None
        is_over = known.expires_at is not None and known.expires_at <= timezone.now()
        return None if is_over else known

    def _unanswered(self, key: object, error: Error) -> Caller:
        known = self._recall(key, within=STALE_SECONDS)
        if known is not None:
            return known.caller
        log.warning("callers.database_failed error=%s", type(error).__name__)
        raise ApiError(
            Code.UNAVAILABLE,
            "the database that knows tokens and users does not answer: try again in a second",
            retry_after_s=1,
        ) from None


@cache
def of_process() -> Identity:
    """Return the cache that both sides of a process share."""
    return Identity()


def _of_token(token: KnownToken | None, proof: TokenProof) -> tuple[Caller, datetime | None]:
    if token is None:
        raise not_authenticated(
            "this token is unknown: it was deleted, or belongs to another cluster"
        )
    if token.state is not TokenState.VALID:
        raise not_authenticated(STATES[token.state])
    caller = Caller(
        kind=CallerKind.TOKEN,
        name=token.name,
        rights=token.rights,
        number=token.number,
        proof=proof,
    )
    return caller, token.expires_at


def _of_user(proof: UserProof) -> Caller:
    user = User.objects.filter(pk=proof.number, is_active=True).first()
    if user is None or not hmac.compare_digest(_fingerprint(user), proof.fingerprint):
        raise not_authenticated(WRONG)
    if selectors.must_change_password(user.pk):
        raise not_authenticated(
            "an administrator set this password: sign in to the console and change it first"
        )
    return Caller(
        kind=CallerKind.USER,
        name=user.get_username(),
        rights=selectors.rights_of_user(user.pk),
        proof=proof,
    )


def _of_session(key: str, proof: SessionProof) -> Caller:
    user = session_users.user_of(key)
    if user is None:
        raise not_authenticated("the session has ended: sign in to the console again")
    return Caller(kind=CallerKind.SESSION, name=user.name, rights=user.rights, proof=proof)


def _is_same(known: Known, proof: UserProof) -> bool:
    """Tell whether a caller is known by the password of a proof, whenever that was verified."""
    other = known.caller.proof
    return isinstance(other, UserProof) and (other.number, other.fingerprint) == (
        proof.number,
        proof.fingerprint,
    )


def _fingerprint(user: User) -> str:
    return hashlib.sha256(user.password.encode()).hexdigest()


def _note_use(known: Known, address: str) -> None:
    number = known.caller.number
    if number is None:
        return
    try:
        token_services.note_use(number, address, now=timezone.now())
    except Error as error:
        # Log it, but do not refuse the call.
        log.warning("callers.use_not_noted token=%s error=%s", number, type(error).__name__)
