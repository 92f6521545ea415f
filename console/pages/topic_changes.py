"""Changes topics: create, edit configs, add partitions, delete. Each ends in a preview."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from brokers.cluster import topic_configs
from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    CreatePartitions,
    DeleteTopic,
)
from brokers.protocol.errors import ErrorCode
from console.forms import topics as forms
from console.forms.typed_names import check_typed_name
from console.kept_forms import keeps_form, typed_in
from console.pages.plans import author_of, error_page_of, plan_changes, show_plan
from console.plans import metadata
from console.plans.kind import CannotPlan
from console.queries import topic_advice
from console.queries.reading import Reading
from console.queries.topic import Found, StoredTopic, TopicPage, head_of, stored_topic
from gateway.access.grants import Resource, decide
from gateway.access.middleware import refuse
from gateway.access.operations import Kind, Operation
from gateway.access.requirements import requires
from gateway.access.selectors import rights_of
from gateway.kafka.kept_topics import loss_of, metrics_topic_of

form_page = require_http_methods(["GET", "HEAD", "POST"])
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
UNAVAILABLE: Final = 503
# Written by the supervisor of the home while it runs.
SETTINGS_FILE: Final = "run/settings.json"
# The form field of an error about a new topic.
FIELDS: Final = MappingProxyType(
    {
        ErrorCode.INVALID_TOPIC_EXCEPTION: "name",
        ErrorCode.TOPIC_ALREADY_EXISTS: "name",
        ErrorCode.INVALID_REQUEST: "name",
        ErrorCode.INVALID_PARTITIONS: "partitions",
        ErrorCode.POLICY_VIOLATION: "partitions",
    }
)
OnTopic = Callable[["Asked"], HttpResponse]


@requires(Operation.CREATE_TOPICS)
@keeps_form()
@form_page
def new_topic(request: HttpRequest) -> HttpResponse:
    """Ask for a new topic; buttons of the form suggest partitions, and add rows for configs."""
    # Only the cluster is needed: no topic has an empty name.
    reading = stored_topic(request.GET.get("cluster"), "", rights_of(request))
    shown = None if reading.data is None else reading.data.frame.shown
    # Never create a topic in another cluster than the named one.
    if shown is not None and request.GET.get("cluster") not in {None, shown.cluster_id}:
        raise Http404
    given = typed_in(request)
    initial = {"name": request.GET.get("name", "")[: forms.MAX_NAME_CHARS]}
    form = forms.NewTopicForm(given, initial=initial)
    pressed = "" if given is None else given.get("do", "")
    is_sent = request.method == "POST" and not pressed and shown is not None
    if is_sent and shown is not None and form.is_whole():
        planned = _planned(request, shown.cluster_id, form)
        if planned is not None:
            return planned
    context = {
        "page": "topics",
        "reading": reading,
        "data": reading.data,
        "form": form,
        "is_checked": is_sent,
        "lines": forms.with_room(form.lines, more=forms.MORE_ROWS if pressed == "more" else 0),
        "rows": forms.offered(),
        "suggestion": topic_advice.suggestion(
            brokers=0 if shown is None else shown.serving_brokers, bytes_per_s=form.bytes_per_s()
        ),
        "is_suggested": pressed == "suggest",
    }
    status = UNAVAILABLE if reading.is_failed else BAD_REQUEST if is_sent else 200
    return render(request, "console/topic_new.html", context, status=status)


def _planned(
    request: HttpRequest, cluster_id: str, form: forms.NewTopicForm
) -> HttpResponse | None:
    """Return the page of the plan; None if a rule refuses the topic, as the form then shows."""
    try:
        # Raises for users who may not view the topic: they must not learn whether it exists.
        plan = metadata.plan_of(author_of(request), cluster_id, [form.action()])
    except CannotPlan as error:
        return error_page_of(error)
    refusal = metadata.refusal_of(plan)
    if refusal is None:
        return show_plan(request, metadata.KIND, plan)
    error_code, message = refusal
    form.add_error(FIELDS.get(error_code), message)
    return None


@requires(Operation.ALTER_CONFIGS)
@keeps_form()
@form_page
def edit_topic(request: HttpRequest, name: str) -> HttpResponse:
    return _on_topic(request, name, Operation.ALTER_CONFIGS, _edit)


@requires(Operation.ALTER_TOPICS)
@keeps_form()
@form_page
def add_partitions(request: HttpRequest, name: str) -> HttpResponse:
    return _on_topic(request, name, Operation.ALTER_TOPICS, _grow)


@requires(Operation.DELETE_TOPICS)
@form_page
def delete_topic(request: HttpRequest, name: str) -> HttpResponse:
    return _on_topic(request, name, Operation.DELETE_TOPICS, _delete)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request about an existing topic, from a user with the necessary right."""

    request: HttpRequest
    reading: Reading[StoredTopic]
    found: Found

    @property
    def is_sent(self) -> bool:
        return self.request.method == "POST"

    def preview(self, action: Action, use: Sequence[str]) -> HttpResponse:
        return plan_changes(self.request, self.found.cluster_id, [action], use=use)

    def form(self, name: str, *, wrong: str = "", **more: object) -> HttpResponse:
        """Show a form, with the errors of what was sent."""
        context = {
            "page": "topics",
            "reading": self.reading,
            "data": self.reading.data,
            "head": head_of(self.found, rights_of(self.request)),
            "wrong": wrong,
            **more,
        }
        status = BAD_REQUEST if self.is_sent else 200
        return render(self.request, f"console/topic_{name}.html", context, status=status)


def _edit(asked: Asked) -> HttpResponse:
    found = asked.found
    lines = forms.edit_lines(found.configs, topic_configs.effective({}, found.wide))
    typed = typed_in(asked.request)
    if typed is None:
        return asked.form("edit", lines=lines)
    lines = forms.edited(lines, {name: typed.get(name, "") for name in typed})
    if not asked.is_sent:
        return asked.form("edit", lines=lines)
    edits = forms.edits_of(lines)
    wrong = forms.together(lines)
    if not edits:
        wrong = "Nothing was changed here: type a value, or empty one that is set."
    if wrong or any(line.error for line in lines):
        return asked.form("edit", lines=lines, wrong=wrong)
    action = AlterConfigs(resource_type=ResourceType.TOPIC, name=found.topic.name, edits=edits)
    return asked.preview(action, topic_advice.met_by_configs(found, rights_of(asked.request)))


def _grow(asked: Asked) -> HttpResponse:
    topic = asked.found.topic
    meets = topic_advice.met_by_growth(asked.found, rights_of(asked.request))
    there, wrong = len(topic.partitions), ""
    typed = (typed_in(asked.request) or QueryDict()).get("count", "").strip()
    if asked.is_sent:
        count, wrong = forms.growth(typed, there=there)
        if not wrong:
            return asked.preview(CreatePartitions(name=topic.name, count=count), meets)
    growths = topic_advice.growths(there, brokers=len(asked.found.serving))
    return asked.form("grow", meets=meets, growths=growths, typed=typed, wrong=wrong)


def _delete(asked: Asked) -> HttpResponse:
    name, wrong = asked.found.topic.name, ""
    meets = topic_advice.met_by_deletion(asked.found, rights_of(asked.request))
    metrics_topic = metrics_topic_of(settings.SAMSA_HOME / SETTINGS_FILE)
    loss = loss_of(name, metrics_topic=metrics_topic)
    if asked.is_sent:
        wrong = check_typed_name(asked.request.POST, name, subject="topic")
        if not wrong:
            return asked.preview(DeleteTopic(name=name), meets)
    return asked.form("delete", meets=meets, loss=loss, wrong=wrong)


def _on_topic(
    request: HttpRequest, name: str, operation: Operation, answer: OnTopic
) -> HttpResponse:
    """Answer for an existing topic, on which the user has the right."""
    rights = rights_of(request)
    reading = stored_topic(request.GET.get("cluster"), name, rights)
    found = None if reading.data is None else reading.data.found
    if found is None:
        data = None if reading.data is None else TopicPage(frame=reading.data.frame, name=name)
        context = {"page": "topics", "reading": reading, "data": data}
        status = UNAVAILABLE if reading.is_failed else NOT_FOUND
        return render(request, "console/topic_missing.html", context, status=status)
    resource = Resource(kind=Kind.TOPIC, cluster=found.cluster_id, name=name)
    decision = decide(rights, operation, resource)
    if not decision.is_allowed:
        return refuse(request, decision)
    return answer(Asked(request=request, reading=reading, found=found))
