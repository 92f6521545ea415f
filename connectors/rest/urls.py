"""The rows of Kafka Connect's REST, below its prefix or at the root of its own port.

Services check the rights that a change needs, since the console makes changes, too.
"""

from typing import Final

from django.urls import URLPattern, re_path

from connectors.rest import connectors, plugins, redrives, worker
from connectors.rest.views import ConnectView, unknown
from gateway.access.operations import Kind, Operation
from gateway.rest.gate import Right
from gateway.rest.route import Route
from gateway.rest.views import patterns

ONE: Final = "/connectors/{name}"
TASK: Final = f"{ONE}/tasks/{{task}}"
# Extensions of Kafka Connect's API.
OURS: Final = f"/samsa{ONE}"
RUN: Final = f"{OURS}/redrives/{{run}}"
PLUGIN: Final = "/connector-plugins/{plugin}"

SEE: Final = Right(operation=Operation.VIEW, kind=Kind.CONNECTOR, name="name")
MANAGE: Final = Right(operation=Operation.MANAGE_BROKERS, kind=Kind.CLUSTER)


def _row(method: str, path: str, view: type[ConnectView], *rights: Right) -> Route:
    return Route(method=method, path=path, view=view, rights=rights)


ROUTES: Final = (
    _row("GET", "", worker.RootView),
    _row("GET", "/health", worker.HealthView),
    _row("GET", "/connectors", connectors.ConnectorsView),
    _row("POST", "/connectors", connectors.ConnectorsView),
    _row("GET", ONE, connectors.ConnectorView, SEE),
    _row("DELETE", ONE, connectors.ConnectorView),
    _row("GET", f"{ONE}/config", connectors.ConfigView, SEE),
    _row("PUT", f"{ONE}/config", connectors.ConfigView),
    _row("PATCH", f"{ONE}/config", connectors.ConfigView),
    _row("GET", f"{ONE}/status", connectors.StatusView, SEE),
    _row("GET", f"{ONE}/tasks", connectors.TasksView, SEE),
    _row("GET", f"{TASK}/status", connectors.TaskStatusView, SEE),
    _row("POST", f"{TASK}/restart", connectors.RestartTaskView),
    _row("POST", f"{ONE}/restart", connectors.RestartView),
    _row("PUT", f"{ONE}/pause", connectors.PauseView),
    _row("PUT", f"{ONE}/resume", connectors.ResumeView),
    _row("PUT", f"{ONE}/stop", connectors.StopView),
    _row("GET", f"{ONE}/offsets", connectors.OffsetsView, SEE),
    _row("PATCH", f"{ONE}/offsets", connectors.OffsetsView),
    _row("DELETE", f"{ONE}/offsets", connectors.OffsetsView),
    _row("GET", f"{ONE}/topics", connectors.TopicsView, SEE),
    _row("PUT", f"{ONE}/topics/reset", connectors.ResetTopicsView),
    _row("GET", "/connector-plugins", plugins.PluginsView),
    _row("GET", f"{PLUGIN}/config", plugins.PluginConfigView),
    _row("PUT", f"{PLUGIN}/config/validate", plugins.ValidateView),
    _row("GET", "/admin/loggers", worker.LoggersView, MANAGE),
    _row("GET", "/admin/loggers/{logger}", worker.LoggerView, MANAGE),
    _row("PUT", "/admin/loggers/{logger}", worker.LoggerView, MANAGE),
    _row("GET", f"{OURS}/dead-letters", redrives.DeadLettersView, SEE),
    _row("GET", f"{OURS}/dead-letters/causes", redrives.CausesView, SEE),
    _row("GET", f"{OURS}/redrives", redrives.RunsView, SEE),
    _row("POST", f"{OURS}/redrives", redrives.RunsView, SEE),
    _row("POST", f"{OURS}/redrives/plan", redrives.PlanView, SEE),
    _row("GET", RUN, redrives.RunView, SEE),
    _row("PUT", f"{RUN}/stop", redrives.StopRunView, SEE),
    _row("PUT", f"{RUN}/resume", redrives.ResumeRunView, SEE),
)
urlpatterns: list[URLPattern] = [*patterns(ROUTES), re_path("", unknown)]
