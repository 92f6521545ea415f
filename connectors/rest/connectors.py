"""Serves connectors over REST: lists, configs, states, tasks, offsets, topics."""

from typing import Any, Final
from urllib.parse import quote

from rest_framework.request import Request
from rest_framework.response import Response

from connectors import selectors, services
from connectors.refusals import NotFound
from connectors.rest import bodies, shapes
from connectors.rest.errors import OF_ADDRESS
from connectors.rest.views import ConnectView, prefix_of
from connectors.runtime.group_names import group_of
from gateway.access.operations import Kind
from gateway.rest.codes import ApiError, Code

# No connector has a billion tasks.
MAX_DIGITS: Final = 9


class ConnectorsView(ConnectView):
    def get(self, request: Request) -> Response:
        """List the connectors that the caller may see: names, or what `expand` asks for."""
        names = self.visible(Kind.CONNECTOR, selectors.names(self.cluster_id))
        asked = request.query_params.getlist("expand")
        if not asked:
            return Response(names)
        found: dict[str, dict[str, Any]] = {name: {} for name in names}
        if "info" in asked:
            for info in selectors.connectors(self.cluster_id, among=names):
                found[info.name]["info"] = shapes.info(info)
        if "status" in asked:
            for status in selectors.statuses(
                self.cluster_id, reader=self.caller.rights, among=names
            ):
                found[status.name]["status"] = shapes.status(status)
        return Response(found)

    def post(self, request: Request) -> Response:
        """Create a connector."""
        name, config, target = bodies.create_of(self.sent())
        made = services.create(self.by, self.cluster_id, name, config, target=target)
        return _made(request, made)


class ConnectorView(ConnectView):
    def get(self, _request: Request, name: str) -> Response:
        return Response(shapes.info(selectors.connector(self.cluster_id, name)))

    def delete(self, _request: Request, name: str) -> Response:
        services.delete(self.by, self.cluster_id, name)
        return Response(status=204)


class ConfigView(ConnectView):
    def get(self, _request: Request, name: str) -> Response:
        return Response(dict(selectors.connector(self.cluster_id, name).config))

    def put(self, request: Request, name: str) -> Response:
        """Replace the config of a connector, or create it."""
        config = bodies.config_of(self.sent())
        info, is_new = services.put_config(self.by, self.cluster_id, name, config)
        return _made(request, info) if is_new else Response(shapes.info(info))

    def patch(self, _request: Request, name: str) -> Response:
        """Change some keys; null removes a key."""
        patch = bodies.patch_of(self.sent())
        return Response(shapes.info(services.patch_config(self.by, self.cluster_id, name, patch)))


class StatusView(ConnectView):
    def get(self, _request: Request, name: str) -> Response:
        return Response(shapes.status(self.status_of(name)))


class TasksView(ConnectView):
    def get(self, _request: Request, name: str) -> Response:
        selectors.connector(self.cluster_id, name)
        return Response(shapes.tasks(self.status_of(name)))


class TaskStatusView(ConnectView):
    def get(self, _request: Request, name: str, task: str) -> Response:
        number = number_of(task)
        found = selectors.task_status(self.cluster_id, name, number, reader=self.caller.rights)
        if found is None:
            raise NotFound(f"No status found for task {name}-{number}")
        version = selectors.connector(self.cluster_id, name).version
        return Response(shapes.task_status(found, version))


class RestartTaskView(ConnectView):
    def post(self, _request: Request, name: str, task: str) -> Response:
        services.restart_task(self.by, self.cluster_id, name, number_of(task))
        return Response(status=204)


class RestartView(ConnectView):
    def post(self, _request: Request, name: str) -> Response:
        """Restart the connector, its tasks too, or only what has failed."""
        include, only_failed = self.flag("includeTasks"), self.flag("onlyFailed")
        status = services.restart(
            self.by, self.cluster_id, name, include_tasks=include, only_failed=only_failed
        )
        if not include and not only_failed:
            return Response(status=204)
        return Response(shapes.status(status), status=202)


class PauseView(ConnectView):
    def put(self, _request: Request, name: str) -> Response:
        services.pause(self.by, self.cluster_id, name)
        return Response(status=202)


class ResumeView(ConnectView):
    def put(self, _request: Request, name: str) -> Response:
        services.resume(self.by, self.cluster_id, name)
        return Response(status=202)


class StopView(ConnectView):
    def put(self, _request: Request, name: str) -> Response:
        services.stop(self.by, self.cluster_id, name)
        return Response(status=204)


class OffsetsView(ConnectView):
    def get(self, _request: Request, name: str) -> Response:
        """Return the offsets of a source, or those committed by the group of a sink."""
        if selectors.connector(self.cluster_id, name).kind == "source":
            found = selectors.source_offsets(self.cluster_id, name)
            return Response(shapes.source_offsets(found))
        with self.groups() as groups:
            return Response(shapes.sink_offsets(groups.committed(group_of(name))))

    def patch(self, _request: Request, name: str) -> Response:
        """Set offsets of a stopped connector; null removes one."""
        offsets = bodies.offsets_of(self.sent())
        with self.groups() as groups:
            said = services.alter_offsets(self.by, self.cluster_id, name, offsets, groups=groups)
        return Response({"message": said})

    def delete(self, _request: Request, name: str) -> Response:
        """Remove the offsets of a stopped connector."""
        with self.groups() as groups:
            said = services.reset_offsets(self.by, self.cluster_id, name, groups=groups)
        return Response({"message": said})


class TopicsView(ConnectView):
    def get(self, _request: Request, name: str) -> Response:
        """Return the topics that were read or written since the last reset."""
        topics = selectors.connector(self.cluster_id, name).topics
        return Response({name: {"topics": list(topics)}})


class ResetTopicsView(ConnectView):
    def put(self, _request: Request, name: str) -> Response:
        services.reset_topics(self.by, self.cluster_id, name)
        return Response(status=202)


def number_of(text: str) -> int:
    """Return the number of a task; other texts are not found."""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise ApiError(Code.NOT_FOUND, OF_ADDRESS[404])
    return int(text)


def _made(request: Request, info: selectors.ConnectorInfo) -> Response:
    address = f"{prefix_of(request)}/connectors/{quote(info.name, safe='')}"
    where = request.build_absolute_uri(address)
    return Response(shapes.info(info), status=201, headers={"Location": where})
