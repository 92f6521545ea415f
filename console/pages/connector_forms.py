"""Shows the catalogue of connectors, and a form that creates or edits one.

One form serves both. Its buttons select an action: check, take over the JSON beside the form, or
add lines; without one of these, the change is planned, and its plan is shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from connectors import drafts, refusals, selectors
from connectors.drafts import Draft
from connectors.selectors import ConnectorInfo
from console.forms import connectors as forms
from console.kept_forms import keeps_form, typed_in
from console.pages.connectors import connector_asked
from console.pages.errors import error_page
from console.pages.plans import author_of, error_page_of, opened_plan, show_plan
from console.plans import connectors as plans
from console.plans.kind import CannotPlan
from console.queries import connector as one_query
from console.queries import connector_form as query
from console.queries.connector import ConnectorPage, Tab
from console.queries.connector_form import Catalogue
from console.queries.links import link
from console.queries.reading import Reading
from gateway.access.operations import Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of

form_page = require_http_methods(["GET", "HEAD", "POST"])
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
CONFLICT: Final = 409
UNAVAILABLE: Final = 503
FAILED: Final = "FAILED"
# Buttons that change nothing.
LOOKS: Final = frozenset({"check", "json", "more", "back"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A form for a new or a stored connector."""

    request: HttpRequest
    reading: Reading[Catalogue] | Reading[ConnectorPage]
    cluster: str
    plugin: str
    stored: ConnectorInfo | None = None

    @property
    def user(self) -> str:
        return self.request.user.get_username()

    @property
    def here(self) -> str:
        if self.stored is None:
            return reverse("console:new-connector", args=[self.plugin])
        return reverse("console:edit-connector", args=[self.stored.name])

    @property
    def typed(self) -> QueryDict | None:
        return typed_in(self.request)

    @property
    def pressed(self) -> str:
        """Return the pressed button; of a form that was kept, one that changes nothing."""
        pressed = (self.typed or QueryDict()).get("do", "")
        return pressed if self.request.method == "POST" or pressed in LOOKS else "check"

    @property
    def first_config(self) -> dict[str, str]:
        """Return the initial config."""
        if self.stored is not None:
            return dict(self.stored.config)
        return {drafts.CLASS: self.plugin}

    def look(self, config: Mapping[str, str], *, is_deep: bool = False) -> Draft:
        return drafts.look(
            author_of(self.request).by.caller,
            self.cluster,
            config,
            plugin=self.plugin,
            stored_of=None if self.stored is None else self.stored.name,
            is_deep=is_deep,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The messages of a form besides its fields."""

    wrong: str = ""
    wrong_json: str = ""
    # The typed JSON, if it could not be parsed.
    json: str | None = field(default=None, repr=False)
    status: int = 200
    more_rows: int = 0
    # The user is still typing, so missing values are no errors.
    is_typing: bool = False


@requires(Operation.CREATE_CONNECTORS)
@require_safe
def catalogue(request: HttpRequest) -> HttpResponse:
    """Show the available connector plugins."""
    reading = query.catalogue(request.GET.get("cluster"), rights_of(request))
    context = {"page": "connectors", "reading": reading, "data": reading.data}
    status = UNAVAILABLE if reading.is_failed else 200
    return render(request, "console/connector_catalogue.html", context, status=status)


@requires(Operation.CREATE_CONNECTORS)
@keeps_form()
@form_page
def new_connector(request: HttpRequest, plugin: str) -> HttpResponse:
    asked = request.POST.get("cluster") or request.GET.get("cluster")
    reading = query.catalogue(asked, rights_of(request))
    shown = None if reading.data is None else reading.data.frame.shown
    if reading.data is None or shown is None:
        return catalogue(request)
    # Never create a connector in another cluster than the named one.
    if asked not in {None, shown.cluster_id}:
        raise Http404
    if all(plugin not in known.names for known in reading.data.plugins):
        return error_page(
            NOT_FOUND,
            title="There is no such plugin here",
            next_step="Choose one of the catalogue, which shows all that are installed.",
        )
    return _answer(Desk(request=request, reading=reading, cluster=shown.cluster_id, plugin=plugin))


@requires(Operation.ALTER_CONNECTORS, resource=connector_asked)
@keeps_form()
@form_page
def edit_connector(request: HttpRequest, name: str) -> HttpResponse:
    asked = request.POST.get("cluster") or request.GET.get("cluster")
    reading = one_query.connector(asked, name, Tab.CONFIG, rights_of(request))
    data = reading.data
    if data is None or data.info is None:
        context = {"page": "connectors", "reading": reading, "data": data}
        status = UNAVAILABLE if reading.is_failed else NOT_FOUND
        return render(request, "console/connector_missing.html", context, status=status)
    if asked is None and request.method != "POST":
        return redirect(link("edit-connector", data.info.cluster, name))
    # The right was checked in the named cluster.
    if asked != data.info.cluster:
        raise Http404
    return _answer(
        Desk(
            request=request,
            reading=reading,
            cluster=data.info.cluster,
            plugin=data.info.plugin,
            stored=data.info,
        )
    )


def _answer(desk: Desk) -> HttpResponse:
    post = desk.typed
    if post is None:
        return _form(desk, desk.first_config, Said(is_typing=True))
    if desk.pressed == "back":
        return _back(desk)
    try:
        held = drafts.unseal(desk.cluster, desk.user, post.get("sealed", ""))
    except refusals.Unfit as error:
        return _form(desk, desk.first_config, Said(wrong=f"{error}.", status=BAD_REQUEST))
    typed = forms.config_of(post, held)
    if desk.pressed == "json":
        return _taken_over(desk, typed.config, held)
    if desk.pressed in LOOKS:
        rows = forms.MORE_ROWS if desk.pressed == "more" else 0
        is_typing = "live" in post or desk.pressed == "more"
        return _form(
            desk, typed.config, Said(wrong=typed.wrong, more_rows=rows, is_typing=is_typing)
        )
    if typed.wrong:
        return _form(desk, typed.config, Said(wrong=typed.wrong, status=BAD_REQUEST))
    return _previewed(desk, drafts.plain_config(typed.config, plugin=desk.plugin))


def _back(desk: Desk) -> HttpResponse:
    """Show the form with the config of a plan."""
    try:
        plan = opened_plan(desk.request, plans.KIND)
        return _form(desk, plans.config_of(author_of(desk.request), plan), Said())
    except CannotPlan as error:
        return error_page_of(error)


def _taken_over(desk: Desk, config: Mapping[str, str], held: Mapping[str, str]) -> HttpResponse:
    text = (desk.typed or QueryDict()).get("json", "").replace("\r\n", "\n")
    try:
        found = forms.config_from(text, held)
    except forms.Unreadable as error:
        said = Said(wrong_json=str(error), json=text, status=BAD_REQUEST)
        return _form(desk, config, said)
    return _form(desk, found, Said())


def _form(
    desk: Desk, config: Mapping[str, str], said: Said, draft: Draft | None = None
) -> HttpResponse:
    draft = draft or desk.look(config)
    if len(draft.others) > forms.MAX_ROWS:
        return error_page(
            BAD_REQUEST,
            title=f"{len(draft.others)} keys are not keys of the plugin; a form takes at most "
            f"{forms.MAX_ROWS}",
            next_step="Write the config into a file, and apply it with"
            " `./samsa connectors apply -f FILE`.",
        )
    rows = [*draft.others, *[("", "")] * (forms.FIRST_ROWS + said.more_rows)]
    context = {
        **_around(desk, draft),
        "said": said,
        "sections": query.sections_of(draft),
        "others": rows[: forms.MAX_ROWS + forms.FIRST_ROWS],
        "topics": query.topics_to_name(desk.cluster, rights_of(desk.request)),
        "json": query.json_of(draft.config) if said.json is None else said.json,
        "sealed": drafts.seal(
            desk.cluster,
            desk.user,
            {key: text for key, text in config.items() if key in draft.hidden},
            draft.hidden,
        ),
    }
    return render(desk.request, "console/connector_form.html", context, status=said.status)


def _previewed(desk: Desk, config: Mapping[str, str]) -> HttpResponse:
    """Preview the change, unless the config is invalid."""
    if _is_other_generation(desk):
        return _outdated(desk)
    draft = desk.look(config, is_deep=True)
    if not draft.is_fit:
        return _form(desk, config, Said(status=BAD_REQUEST), draft)
    changed = []
    if desk.stored is not None:
        changed = drafts.changed(desk.stored.config, draft, config)
        # The author of a failed connector may have lost a right: if another user sends the same
        # config, it runs with theirs.
        if not changed and not _has_failed(desk):
            said = Said(wrong="Nothing was changed here: change a value, or cancel.", status=400)
            return _form(desk, config, said, draft)
    plan = plans.plan_of(author_of(desk.request), desk.cluster, config, draft, stored=desk.stored)
    return show_plan(desk.request, plans.KIND, plan)


def _has_failed(desk: Desk) -> bool:
    assert desk.stored is not None, "asked of what is stored"
    rights = rights_of(desk.request)
    return selectors.status(desk.cluster, desk.stored.name, reader=rights).state == FAILED


def _is_other_generation(desk: Desk) -> bool:
    if desk.stored is None:
        return False
    return desk.request.POST.get("generation", "") != str(desk.stored.generation)


def _outdated(desk: Desk) -> HttpResponse:
    assert desk.stored is not None, "only what is stored can change meanwhile"
    return error_page(
        CONFLICT,
        title=f"{desk.stored.name} was changed or restarted meanwhile",
        next_step="Nothing was changed. Open its form again, which shows the config as it is now,"
        " and repeat your change.",
    )


def _around(desk: Desk, draft: Draft) -> dict[str, object]:
    return {
        "page": "connectors",
        "reading": desk.reading,
        "data": desk.reading.data,
        "draft": draft,
        "stored": desk.stored,
        "here": desk.here,
    }
