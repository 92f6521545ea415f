"""Shows API tokens: users create and revoke their own, managers of tokens revoke all."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from console.forms.tokens import LIVES, TokenForm
from console.kept_forms import keeps_form, typed_in
from console.queries import tokens as query
from console.queries.reading import Reading
from gateway.access import selectors, token_services
from gateway.access.requirements import signed_in
from gateway.access.services import Refused

form_page = require_http_methods(["GET", "HEAD", "POST"])


@signed_in
@require_safe
def tokens(request: HttpRequest) -> HttpResponse:
    return _answer(request, "console/tokens.html", query.tokens(_asking(request)))


@signed_in
@keeps_form()
@form_page
def new_token(request: HttpRequest) -> HttpResponse:
    asking = _asking(request)
    reading = query.token_page(asking, None)
    form = TokenForm(typed_in(request))
    page = "console/token_new.html"
    if request.method != "POST":
        return _answer(request, page, reading, form=form, lives=LIVES)
    refused: Refused | None = None
    if form.is_valid():
        try:
            text = token_services.create_token(
                actor=selectors.actor_of(request),
                name=form.cleaned_data["name"],
                grants=form.grants(),
                owner_id=asking.user_id,
                life=form.duration(),
            )
        except Refused as error:
            refused = error
        else:
            name = form.cleaned_data["name"]
            return _answer(request, "console/token_made.html", reading, text=text, name=name)
    return _answer(request, page, reading, form=form, lives=LIVES, refused=refused, status=400)


@signed_in
@form_page
def revoke_token(request: HttpRequest, number: int) -> HttpResponse:
    """Ask for confirmation, and revoke a token when the form is returned."""
    asking = _asking(request)
    reading = query.token_page(asking, number)
    if reading.data is not None and reading.data.token is None:
        raise Http404
    if request.method != "POST":
        return _answer(request, "console/token_revoke.html", reading)
    try:
        name = token_services.revoke_token(
            actor=selectors.actor_of(request), number=number, owner_id=asking.owner_id
        )
    except Refused as error:
        return _answer(request, "console/token_revoke.html", reading, refused=error, status=400)
    messages.success(request, f"{name} is revoked. Its streams end within 5 s.")
    return redirect("console:tokens")


def _asking(request: HttpRequest) -> query.Asking:
    assert request.user.pk is not None, "the gate lets in who is signed in"
    return query.Asking(user_id=request.user.pk, rights=selectors.rights_of(request))


def _answer(
    request: HttpRequest,
    template: str,
    reading: Reading[query.Tokens] | Reading[query.TokenPage],
    *,
    status: int = 200,
    **more: object,
) -> HttpResponse:
    context = {"page": "tokens", "reading": reading, "data": reading.data, **more}
    return render(request, template, context, status=503 if reading.is_failed else status)
