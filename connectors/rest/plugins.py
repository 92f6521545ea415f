"""Serves plugins over REST: the list, their keys, and the validation of configs."""

from collections.abc import Iterator
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from connectors import registry, selectors, validation
from connectors.installed_parts import INSTALLED
from connectors.refusals import NotFound, Unfit
from connectors.rest import bodies, shapes
from connectors.rest.views import ConnectView
from gateway.access.operations import Kind, Operation

# Users with one of these rights may have a connector check its other side.
WRITES = (Operation.CREATE_CONNECTORS, Operation.ALTER_CONNECTORS)


class PluginsView(ConnectView):
    def get(self, request: Request) -> Response:
        """List connectors, and with connectorsOnly=false what configs put beside them."""
        found = [
            {"class": name, "type": plugin.kind, "version": plugin.version}
            for plugin in selectors.catalogue()
            for name in plugin_names(plugin)
        ]
        if request.query_params.get("connectorsOnly", "true").lower() == "false":
            found += _parts()
        return Response(found)


class PluginConfigView(ConnectView):
    def get(self, _request: Request, plugin: str) -> Response:
        """List the keys of a connector, a converter, a transform or a predicate."""
        found = registry.find(plugin)
        if found is not None:
            return Response([shapes.definition(entry) for entry in validation.definitions(found)])
        parts = (INSTALLED.header_converters, INSTALLED.transforms, INSTALLED.predicates)
        for classes in parts:
            if plugin in classes:
                keys = classes[plugin].definition()
                return Response([shapes.bare_definition(key) for key in keys])
        raise NotFound(f"Unknown plugin {plugin}.")


class ValidateView(ConnectView):
    def put(self, _request: Request, plugin: str) -> Response:
        """Validate a config, without changes."""
        config = bodies.config_of(self.sent())
        named = selectors.class_in(config)
        found = selectors.plugin_of(named)
        if registry.find(plugin) is not found:
            raise Unfit(f"Included connector type {named} does not match request type {plugin}")
        name = config.get("name", "").strip()
        rights = self.caller.rights
        may_alter = name in rights.names(
            Operation.ALTER_CONNECTORS, cluster=self.cluster_id, kind=Kind.CONNECTOR
        )
        judged = selectors.validate(
            self.caller,
            self.cluster_id,
            found,
            config,
            stored_of=name if name and may_alter else None,
            is_deep=any(
                rights.allows_somewhere(operation, cluster=self.cluster_id) for operation in WRITES
            ),
        )
        return Response(shapes.validation(plugin, judged))


def plugin_names(plugin: selectors.Plugin) -> Iterator[str]:
    """Yield the names by which tools look up a connector: its own, and Java's full names."""
    yield plugin.name
    yield from (name for name in plugin.names[1:] if "." in name)


def _parts() -> list[dict[str, Any]]:
    kinds = (
        ("transformation", INSTALLED.transforms),
        ("predicate", INSTALLED.predicates),
        ("converter", INSTALLED.converters),
        ("header_converter", INSTALLED.header_converters),
    )
    return [
        {"class": name, "type": kind, "version": shapes.VERSION}
        for kind, classes in kinds
        for name in validation.full_names(classes)
    ]
