"""Maps the addresses of Kafka Connect's REST, below its prefix or at the root of its own port."""

from typing import Final

from django.urls import URLPattern, re_path

from connectors.rest import connectors, plugins, redrives, worker
from connectors.rest.views import unknown
from gateway.rest.views import at

ONE: Final = "connectors/{name}"
TASK: Final = f"{ONE}/tasks/{{task}}"
# Extensions of Kafka Connect's API.
OURS: Final = f"samsa/{ONE}"
RUN: Final = f"{OURS}/redrives/{{run}}"
PLUGIN: Final = "connector-plugins/{plugin}"

urlpatterns: list[URLPattern] = [
    at("", worker.RootView),
    at("health", worker.HealthView),
    at("connectors", connectors.ConnectorsView),
    at(ONE, connectors.ConnectorView),
    at(f"{ONE}/config", connectors.ConfigView),
    at(f"{ONE}/status", connectors.StatusView),
    at(f"{ONE}/tasks", connectors.TasksView),
    at(f"{TASK}/status", connectors.TaskStatusView),
    at(f"{TASK}/restart", connectors.RestartTaskView),
    at(f"{ONE}/restart", connectors.RestartView),
    at(f"{ONE}/pause", connectors.PauseView),
    at(f"{ONE}/resume", connectors.ResumeView),
    at(f"{ONE}/stop", connectors.StopView),
    at(f"{ONE}/offsets", connectors.OffsetsView),
    at(f"{ONE}/topics", connectors.TopicsView),
    at(f"{ONE}/topics/reset", connectors.ResetTopicsView),
    at("connector-plugins", plugins.PluginsView),
    at(f"{PLUGIN}/config", plugins.PluginConfigView),
    at(f"{PLUGIN}/config/validate", plugins.ValidateView),
    at("admin/loggers", worker.LoggersView),
    at("admin/loggers/{logger}", worker.LoggerView),
    at(f"{OURS}/dead-letters", redrives.DeadLettersView),
    at(f"{OURS}/dead-letters/causes", redrives.CausesView),
    at(f"{OURS}/redrives", redrives.RunsView),
    at(f"{OURS}/redrives/plan", redrives.PlanView),
    at(RUN, redrives.RunView),
    at(f"{RUN}/stop", redrives.StopRunView),
    at(f"{RUN}/resume", redrives.ResumeRunView),
    re_path("", unknown),
]
