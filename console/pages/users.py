"""Shows and changes the users of the console and their rights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from console.forms.typed_names import check_typed_name
from console.forms.users import GrantForm, NewUserForm
from console.kept_forms import keeps_form, typed_in
from console.pages.form_addresses import takes_forms
from console.queries import users as query
from console.queries.reading import Reading
from gateway.access import selectors, services, token_services
from gateway.access.audit import Actor
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.services import Refused

form_page = require_http_methods(["GET", "HEAD", "POST"])
manages = requires(Operation.MANAGE_USERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A change of a user that needs confirmation."""

    title: str
    button: str
    # What happens, and what does not.
    sentence: str
    done: str
    run: Callable[[Actor, int], object]
    is_final: bool = False
    # The answer is a page that shows a password once.
    shows_password: bool = False


ACTIONS: Final[dict[str, Action]] = {
    "disable": Action(
        title="Disable",
        button="Disable",
        sentence="The user is signed out everywhere and cannot sign in. Rights are kept.",
        done="is disabled",
        run=lambda actor, number: services.set_enabled(
            actor=actor, number=number, is_enabled=False
        ),
    ),
    "enable": Action(
        title="Enable",
        button="Enable",
        sentence="The user can sign in again, with the same rights and password.",
        done="is enabled",
        run=lambda actor, number: services.set_enabled(actor=actor, number=number, is_enabled=True),
    ),
    "reset-password": Action(
        title="Reset the password of",
        button="Reset password",
        sentence="A new password is created and shown once. The present one becomes invalid, and "
        "the user is signed out everywhere.",
        done="has a new password",
        run=lambda actor, number: services.reset_password(actor=actor, number=number),
        shows_password=True,
    ),
    "end-sessions": Action(
        title="Sign out",
        button="Sign out everywhere",
        sentence="All sessions end at once. The user can sign in again.",
        done="is signed out everywhere",
        run=lambda actor, number: services.end_sessions(actor=actor, number=number),
    ),
    "delete": Action(
        title="Delete",
        button="Delete for good",
        sentence="Deletes the user with all rights and sessions. This cannot be undone. The "
        "audit log keeps the name.",
        done="is deleted",
        run=lambda actor, number: services.delete_user(actor=actor, number=number),
        is_final=True,
    ),
}


@manages
@require_safe
def users(request: HttpRequest) -> HttpResponse:
    reading = query.users(_asking(request), request.GET.get("q", ""))
    context = {"page": "users", "reading": reading, "data": reading.data}
    return render(request, "console/users.html", context, status=503 if reading.is_failed else 200)


def _page_of_user(_request: HttpRequest, number: int, **_parts: object) -> str:
    return reverse("console:user", args=[number])


@manages
@keeps_form(but=("password",))
@sensitive_post_parameters("password")
@form_page
def new_user(request: HttpRequest) -> HttpResponse:
    form = NewUserForm(typed_in(request))
    reading = query.user_page(_asking(request), None)
    if request.method != "POST":
        return _answer(request, "console/user_new.html", reading, form=form)
    if not form.is_valid():
        return _answer(request, "console/user_new.html", reading, form=form, status=400)
    given = form.cleaned_data
    try:
        password = services.create_user(
            actor=selectors.actor_of(request),
            name=given["name"],
            grant=form.grant(),
            password=given["password"] or None,
        )
    except Refused as error:
        return _answer(
            request, "console/user_new.html", reading, form=form, refused=error, status=400
        )
    return _show_password(request, reading, name=given["name"], password=password, is_new=True)


@manages
@require_safe
def user(request: HttpRequest, number: int) -> HttpResponse:
    return _user(request, number)


@manages
@keeps_form()
@takes_forms(_page_of_user)
def add_grant(request: HttpRequest, number: int) -> HttpResponse:
    form = GrantForm(typed_in(request))
    if request.method != "POST":
        return _user(request, number, form=form)
    if not form.is_valid():
        return _user(request, number, form=form, status=400)
    try:
        services.add_grant(actor=selectors.actor_of(request), number=number, grant=form.grant())
    except Refused as error:
        return _user(request, number, form=form, refused=error, status=400)
    messages.success(request, "The right is granted, from the next sign-in on.")
    return redirect("console:user", number=number)


@manages
@takes_forms(_page_of_user)
def remove_grant(request: HttpRequest, number: int, grant: int) -> HttpResponse:
    try:
        services.remove_grant(actor=selectors.actor_of(request), number=number, grant=grant)
    except Refused as error:
        return _user(request, number, refused=error, status=400)
    messages.success(request, "The right is revoked, and the user is signed out.")
    return redirect("console:user", number=number)


@manages
@form_page
def change_user(request: HttpRequest, number: int, action: str) -> HttpResponse:
    """Ask for confirmation, and change a user when the form is returned."""
    chosen = ACTIONS.get(action)
    if chosen is None:
        raise Http404
    reading = query.user_page(_asking(request), number)
    name = _name_in(reading)
    if request.method != "POST":
        return _confirm(request, reading, chosen)
    if chosen.is_final and (wrong := check_typed_name(request.POST, name, subject="user")):
        return _confirm(request, reading, chosen, wrong=wrong)
    actor = selectors.actor_of(request)
    try:
        result = chosen.run(actor, number)
    except Refused as error:
        return _confirm(request, reading, chosen, refused=error)
    if chosen.shows_password:
        if request.POST.get("revoke-tokens"):
            revoked = token_services.revoke_all_of(actor=actor, owner_id=number)
            messages.success(request, f"{revoked} API token{'' if revoked == 1 else 's'} revoked.")
        return _show_password(request, reading, name=name, password=str(result), is_new=False)
    messages.success(request, f"{name} {chosen.done}.")
    return redirect("console:users") if chosen.is_final else redirect("console:user", number=number)


def _asking(request: HttpRequest) -> query.Asking:
    return query.Asking(
        rights=selectors.rights_of(request),
        name=request.user.get_username(),
        session_key=request.session.session_key,
    )


def _name_in(reading: Reading[query.UserPage]) -> str:
    if reading.data is not None and reading.data.user is None:
        raise Http404
    found = None if reading.data is None else reading.data.user
    return "" if found is None else found.name


def _user(
    request: HttpRequest,
    number: int,
    *,
    form: GrantForm | None = None,
    refused: Refused | None = None,
    status: int = 200,
) -> HttpResponse:
    reading = query.user_page(_asking(request), number)
    _name_in(reading)
    return _answer(
        request,
        "console/user.html",
        reading,
        form=form or GrantForm(),
        refused=refused,
        status=status,
    )


def _confirm(
    request: HttpRequest,
    reading: Reading[query.UserPage],
    action: Action,
    *,
    refused: Refused | None = None,
    wrong: str = "",
) -> HttpResponse:
    return _answer(
        request,
        "console/user_confirm.html",
        reading,
        action=action,
        refused=refused,
        wrong=wrong,
        status=400 if refused or wrong else 200,
    )


def _show_password(
    request: HttpRequest,
    reading: Reading[query.UserPage],
    *,
    name: str,
    password: str,
    is_new: bool,
) -> HttpResponse:
    """Answer with a password, once: only its hash is stored."""
    return _answer(
        request,
        "console/user_password.html",
        reading,
        name=name,
        password=password,
        is_new=is_new,
    )


def _answer(
    request: HttpRequest,
    template: str,
    reading: Reading[query.UserPage],
    *,
    status: int = 200,
    **more: object,
) -> HttpResponse:
    context = {"page": "users", "reading": reading, "data": reading.data, **more}
    return render(request, template, context, status=503 if reading.is_failed else status)
