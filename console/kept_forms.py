"""Keeps what was typed into a form when a session ends, for the user who typed it.

A form that is sent after the end of the session is not lost: the sign-in page carries its fields,
encrypted, and the form's own page shows them again once the same user has signed in. Nothing is
done with them until that user sends the form again. For a visitor who is not signed in, the server
stores nothing.

A page names its user in each form that is kept, by a signature: so the fields of a form return to
this user only, and a form that another site wrote is not kept at all.
"""

import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils.crypto import salted_hmac
from django.utils.functional import SimpleLazyObject
from django.utils.html import format_html

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
# The largest form that is kept. One that was sent without a session has to fit, encrypted, into the
# form of the sign-in too, beside a name, a password and an address.
MAX_BYTES: Final = 1024 * 1024
SIGN_IN_BYTES: Final = 8 * 1024
# The time that a user has to sign in again.
SIGN_IN_S: Final = 3600
# The time until the form's page has to be shown after that; the session holds the fields meanwhile.
SHOW_S: Final = 600
# The namespace of the console's addresses.
PAGES: Final = "console"
FORBIDDEN: Final = 403
TOO_LARGE: Final = 413
NONCE_BYTES: Final = 12  # The usual size for GCM.
BY_FIELD: Final = "typed_by"
KEPT_FIELD: Final = "kept"
SESSION_NAME: Final = "kept_form"
_PURPOSE: Final = "samsa.kept-form"
_MARK: Final = "keeps_form"
# Fields that belong to one page, and no user typed.
_OF_PAGE: Final = frozenset({"csrfmiddlewaretoken", BY_FIELD, KEPT_FIELD})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The fields of a form, and the address that it was sent to."""

    path: str
    fields: tuple[tuple[str, str], ...]
    has_files: bool

    def data(self) -> QueryDict:
        found = QueryDict(mutable=True)
        for name, text in self.fields:
            found.appendlist(name, text)
        return found


def keeps_form(*, but: Iterable[str] = ()) -> Callable[[View], View]:
    """Mark a view whose form is kept, except for the named fields. Its template has `typed_by`."""

    def mark(view: View) -> View:
        setattr(view, _MARK, frozenset(but))
        return view

    return mark


def typed_in(request: HttpRequest) -> QueryDict | None:
    """Return the fields that a user typed: those of this request, or those that were kept."""
    if request.method == "POST":
        return request.POST
    found: Kept | None = getattr(request, SESSION_NAME, None)
    return None if found is None else found.data()


class KeptForms:
    """Answers before the gate, which leads visitors who are not signed in to an empty form."""

    async_capable = False
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def look(
        self, request: HttpRequest, view: View, _args: tuple[object, ...], _kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        if _is_unread(request):
            return _sheet(request)
        if not hasattr(view, _MARK):
            return None
        if isinstance(request.user, AnonymousUser):
            return _sign_in_page(request) if request.method == "POST" else None
        if request.method == "GET":
            _take_up(request)
        return None

    # The name that Django expects.
    process_view = look


def bring_back(request: HttpRequest, sealed: str) -> str:
    """Keep the fields for the user who has signed in; return the address of their form.

    Empty if nothing was kept, or by another user.
    """
    user_id = request.user.pk
    kept = None if user_id is None else _opened(sealed, user_id, max_age_s=SIGN_IN_S)
    if user_id is None or kept is None:
        return ""
    request.session[SESSION_NAME] = {"path": kept.path, "sealed": _sealed(kept, user_id)}
    return kept.path


def rescued(request: HttpRequest) -> HttpResponse | None:
    """Return the answer to a form of before another sign-in, whose CSRF token is not valid now."""
    if request.method != "POST":
        return None
    if _is_unread(request):
        return _sheet(request)
    user = request.user
    match = request.resolver_match
    if match is not None and hasattr(match.func, _MARK):
        if isinstance(user, AnonymousUser):
            return _sign_in_page(request)
        kept = _kept_of(request) if _typed_by(request) == user.pk else None
        sealed = "" if kept is None else _sealed(kept, user.pk)
    else:
        # The sign-in page, of a user who has signed in meanwhile.
        sealed = request.POST.get(KEPT_FIELD, "")
    path = bring_back(request, sealed)
    return HttpResponseRedirect(path) if path else None


def context(request: HttpRequest) -> dict[str, object]:
    """Give every template `typed_by`, the field of a form that is kept."""
    return {"typed_by": SimpleLazyObject(lambda: _by_field(request))}


def _by_field(request: HttpRequest) -> str:
    user = getattr(request, "user", None)
    if user is None or user.pk is None:
        return ""
    field = '<input type="hidden" name="{}" value="{}">'
    return format_html(field, BY_FIELD, _signer().sign(str(user.pk)))


def _sign_in_page(request: HttpRequest) -> HttpResponse | None:
    """Return the sign-in page with what was typed; None if the form names no user of ours."""
    number = _typed_by(request)
    user = None if number is None else User.objects.filter(pk=number).first()
    if user is None:
        return None
    kept = _kept_of(request)
    sealed = "" if kept is None else _sealed(kept, user.pk)
    fits = len(sealed) <= settings.STRANGERS_BODY_BYTES - SIGN_IN_BYTES
    return _sheet(request, name=user.get_username(), kept=sealed if fits else "")


def _sheet(request: HttpRequest, *, name: str = "", kept: str = "") -> HttpResponse:
    """Return the sign-in page with what was kept; without, it says that the form is too large."""
    context = {
        "name": name,
        "kept": kept,
        "next": request.get_full_path(),
        "was_sent": True,
        "size": _size_of(request),
    }
    return render(request, "console/login.html", context, status=FORBIDDEN if kept else TOO_LARGE)


def _is_unread(request: HttpRequest) -> bool:
    """Return whether the gateway has discarded a form, which was too large without a session."""
    match = request.resolver_match
    if match is None or match.namespace != PAGES:
        return False  # A program sends calls, not forms, and has no session.
    is_stranger = isinstance(request.user, AnonymousUser)
    return is_stranger and _size_of(request) > settings.STRANGERS_BODY_BYTES


def _size_of(request: HttpRequest) -> int:
    told = request.META.get("CONTENT_LENGTH") or "0"
    return int(told) if told.isascii() and told.isdigit() else 0


def _typed_by(request: HttpRequest) -> int | None:
    try:
        return int(_signer().unsign(request.POST.get(BY_FIELD, "")))
    except (signing.BadSignature, ValueError):
        return None


def _kept_of(request: HttpRequest) -> Kept | None:
    """Return the fields of a sent form; None if they are too large."""
    assert request.resolver_match is not None, "only views are marked"
    left_out = _OF_PAGE | getattr(request.resolver_match.func, _MARK)
    fields = tuple(
        (name, text)
        for name, texts in request.POST.lists()
        if name not in left_out
        for text in texts
    )
    size = sum(len(name.encode()) + len(text.encode()) for name, text in fields)
    if size > MAX_BYTES:
        return None
    return Kept(path=request.get_full_path(), fields=fields, has_files=bool(request.FILES))


def _take_up(request: HttpRequest) -> None:
    """Give this request the fields that its session keeps for its address."""
    held, user_id = request.session.get(SESSION_NAME), request.user.pk
    if held is None or user_id is None or held["path"] != request.get_full_path():
        return
    del request.session[SESSION_NAME]
    setattr(request, SESSION_NAME, _opened(held["sealed"], user_id, max_age_s=SHOW_S))


def _sealed(kept: Kept, user_id: int) -> str:
    told = [time.time(), kept.path, kept.fields, kept.has_files]
    nonce, cipher = secrets.token_bytes(NONCE_BYTES), AESGCM(_key(settings.SECRET_KEY))
    text = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
    sealed = cipher.encrypt(nonce, text, _bound_to(user_id))
    return urlsafe_b64encode(nonce + sealed).decode()


def _opened(sealed: str, user_id: int, *, max_age_s: int) -> Kept | None:
    """Return what was sealed for this user; None if it is too old, another user's, or invalid."""
    try:
        data = urlsafe_b64decode(sealed)
    except ValueError:
        return None
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            told = AESGCM(_key(secret)).decrypt(
                data[:NONCE_BYTES], data[NONCE_BYTES:], _bound_to(user_id)
            )
        except (ValueError, InvalidTag):
            continue
        made_at, path, fields, has_files = json.loads(told)
        if time.time() - made_at > max_age_s:
            return None
        pairs = tuple((name, text) for name, text in fields)
        return Kept(path=path, fields=pairs, has_files=has_files)
    return None


def _key(secret: object) -> bytes:
    return salted_hmac(_PURPOSE, "key", secret=str(secret), algorithm="sha256").digest()


def _bound_to(user_id: int) -> bytes:
    return f"{_PURPOSE}:{user_id}".encode()


def _signer() -> signing.Signer:
    return signing.Signer(salt=f"{_PURPOSE}.by")
