"""Serves configs of topics, of brokers, and of all brokers at once."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.http import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.operations import Kind, Operation
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.pool import Clients
from gateway.kafka.values import Config, ConfigEdit, EditKind, ResourceKind
from gateway.rest.codes import ApiError, Code, from_kafka
from gateway.rest.v3.clusters import broker_of
from gateway.rest.v3.views import V3View, nothing

# Each has some thirty configs of half a kilobyte of JSON: build an answer by the megabyte.
TOPICS_AT_ONCE: Final = 50
# The name under which brokers store the configs of all brokers.
ALL_BROKERS: Final = ""


class ConfigsView(V3View):
    """What the three kinds of configs have in common."""

    def alter(
        self,
        kind: ResourceKind,
        name: str,
        edits: Sequence[ConfigEdit],
        *,
        is_dry_run: bool = False,
    ) -> Response:
        with self.clients() as clients:
            if kind is ResourceKind.BROKER and name != ALL_BROKERS:
                name = str(broker_of(clients, name).id)
            clients.admin.alter_configs(kind, name, edits, is_dry_run=is_dry_run)
        if not is_dry_run:
            keys = ", ".join(edit.key for edit in edits)
            self.note("configs_altered", f"{kind.value} {name}".strip(), keys=keys)
        return nothing()

    def alter_many(self, kind: ResourceKind, name: str) -> Response:
        asked = self.asked
        edits = edits_of(asked["data"])
        return self.alter(kind, name, edits, is_dry_run=asked["validate_only"])

    def set(self, kind: ResourceKind, name: str, key: str) -> Response:
        value = self.asked.get("value")
        if value is None:
            raise ApiError(Code.BAD_REQUEST, "value: give one, or DELETE the config to unset it")
        return self.alter(kind, name, [ConfigEdit(key=key, value=value)])

    def unset(self, kind: ResourceKind, name: str, key: str) -> Response:
        return self.alter(kind, name, [ConfigEdit(key=key, kind=EditKind.DELETE)])


class AllTopicConfigsView(ConfigsView):
    def get(self, _request: Request) -> HttpResponseBase:
        """List the configs of all topics that the caller may see."""
        with self.clients() as clients:
            names = self.visible(Kind.TOPIC, [topic.name for topic in clients.admin.topics()])
        # Read before the answer starts, so that a failure here still has a status.
        first = self._items(names[:TOPICS_AT_ONCE])
        rest = batched(names[TOPICS_AT_ONCE:], TOPICS_AT_ONCE)
        empty = self.bodies.listed("KafkaTopicConfig", [], "topics", "-", "configs")
        if not rest:
            return Response(empty | {"data": first})
        return self.listed_in_pieces(empty, first, [partial(self._items, piece) for piece in rest])

    def _items(self, names: Sequence[str]) -> list[dict[str, Any]]:
        with self.clients() as clients:
            found = clients.admin.find_configs(names)
        return [
            self.bodies.of_topic_config(name, config)
            for name, configs in found.items()
            for config in configs
        ]


class AlterAllTopicConfigsView(ConfigsView):
    def post(self, _request: Request) -> Response:
        """Set and unset configs of several topics; for each topic all of them, or none.

        If a topic or a config does not exist, nothing is changed. Changes that the brokers refuse
        later are reported by topic, with status 207; the other topics have changed.
        """
        asked = self.asked
        is_dry_run: bool = asked["validate_only"]
        edits = edits_by_topic(asked["data"])
        for name in edits:
            self.require(Operation.ALTER_CONFIGS, Kind.TOPIC, name)
        with self.clients() as clients:
            found = clients.admin.configs_of_topics(list(edits))
            for name, wanted in edits.items():
                for edit in wanted:
                    one_of(found[name], edit.key, f"topic {name}")
            refused = clients.admin.alter_configs_of_topics(edits, is_dry_run=is_dry_run)
        for name, wanted in edits.items():
            if not is_dry_run and name not in refused:
                keys = ", ".join(edit.key for edit in wanted)
                self.note("configs_altered", f"topic {name}", keys=keys)
        return nothing() if not refused else Response(failures_of(refused), status=207)


class TopicConfigsView(ConfigsView):
    def get(self, _request: Request, topic_name: str) -> Response:
        """List the configs of a topic."""
        with self.clients() as clients:
            found = clients.admin.configs(ResourceKind.TOPIC, topic_name)
        items = [self.bodies.of_topic_config(topic_name, config) for config in found]
        at = ("topics", topic_name, "configs")
        return Response(self.bodies.listed("KafkaTopicConfig", items, *at))


class AlterTopicConfigsView(ConfigsView):
    def post(self, _request: Request, topic_name: str) -> Response:
        """Set and unset configs of a topic: all of them, or none."""
        return self.alter_many(ResourceKind.TOPIC, topic_name)


class TopicConfigView(ConfigsView):
    def get(self, _request: Request, topic_name: str, name: str) -> Response:
        """Show a config of a topic."""
        with self.clients() as clients:
            found = clients.admin.configs(ResourceKind.TOPIC, topic_name)
        config = one_of(found, name, f"topic {topic_name}")
        return Response(self.bodies.of_topic_config(topic_name, config))

    def put(self, _request: Request, topic_name: str, name: str) -> Response:
        """Set a config of a topic."""
        return self.set(ResourceKind.TOPIC, topic_name, name)

    def delete(self, _request: Request, topic_name: str, name: str) -> Response:
        """Unset a config of a topic, so that the default holds."""
        return self.unset(ResourceKind.TOPIC, topic_name, name)


class AllBrokerConfigsView(ConfigsView):
    def get(self, _request: Request) -> Response:
        """List the configs of all brokers."""
        with self.clients() as clients:
            items = [
                self.bodies.of_broker_config(broker, config)
                for broker in clients.admin.brokers()
                for config in clients.admin.configs(ResourceKind.BROKER, str(broker))
            ]
        at = ("brokers", "-", "configs")
        return Response(self.bodies.listed("KafkaBrokerConfig", items, *at))


class BrokerConfigsView(ConfigsView):
    def get(self, _request: Request, broker_id: str) -> Response:
        """List the configs of a broker."""
        with self.clients() as clients:
            broker, found = configs_of_broker(clients, broker_id)
        items = [self.bodies.of_broker_config(broker, config) for config in found]
        at = ("brokers", broker, "configs")
        return Response(self.bodies.listed("KafkaBrokerConfig", items, *at))


class AlterBrokerConfigsView(ConfigsView):
    def post(self, _request: Request, broker_id: str) -> Response:
        """Set and unset configs of a broker: all of them, or none."""
        return self.alter_many(ResourceKind.BROKER, broker_id)


class BrokerConfigView(ConfigsView):
    def get(self, _request: Request, broker_id: str, name: str) -> Response:
        """Show a config of a broker."""
        with self.clients() as clients:
            broker, found = configs_of_broker(clients, broker_id)
        config = one_of(found, name, f"broker {broker}")
        return Response(self.bodies.of_broker_config(broker, config))

    def put(self, _request: Request, broker_id: str, name: str) -> Response:
        """Set a config of a broker."""
        return self.set(ResourceKind.BROKER, broker_id, name)

    def delete(self, _request: Request, broker_id: str, name: str) -> Response:
        """Unset a config of a broker."""
        return self.unset(ResourceKind.BROKER, broker_id, name)


class ClusterConfigsView(ConfigsView):
    def get(self, _request: Request) -> Response:
        """List the configs that are set for all brokers."""
        found = self.defaults()
        items = [self.bodies.of_cluster_config(config) for config in found]
        return Response(self.bodies.listed("KafkaClusterConfig", items, "broker-configs"))

    def defaults(self) -> list[Config]:
        with self.clients() as clients:
            return clients.admin.configs(ResourceKind.BROKER, ALL_BROKERS)


class AlterClusterConfigsView(ConfigsView):
    def post(self, _request: Request) -> Response:
        """Set and unset configs of all brokers: all of them, or none."""
        return self.alter_many(ResourceKind.BROKER, ALL_BROKERS)


class ClusterConfigView(ClusterConfigsView):
    def get(self, _request: Request, name: str) -> Response:  # type: ignore[override]
        """Show a config that is set for all brokers."""
        config = one_of(self.defaults(), name, "the brokers together")
        return Response(self.bodies.of_cluster_config(config))

    def put(self, _request: Request, name: str) -> Response:
        """Set a config of all brokers."""
        return self.set(ResourceKind.BROKER, ALL_BROKERS, name)

    def delete(self, _request: Request, name: str) -> Response:
        """Unset a config of all brokers."""
        return self.unset(ResourceKind.BROKER, ALL_BROKERS, name)


def configs_of_broker(clients: Clients, number: str) -> tuple[int, list[Config]]:
    broker = broker_of(clients, number).id
    return broker, clients.admin.configs(ResourceKind.BROKER, str(broker))


def one_of(found: Iterable[Config], name: str, owner: str) -> Config:
    for config in found:
        if config.key == name:
            return config
    raise ApiError(
        Code.NOT_FOUND, f"Config {name} cannot be found for {owner}; the list shows all of them."
    )


def batched(names: Sequence[str], size: int) -> list[Sequence[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]


def edits_by_topic(asked: Iterable[Mapping[str, Any]]) -> dict[str, list[ConfigEdit]]:
    """Return the changes of a batch by topic; each topic may be named once."""
    found: dict[str, list[ConfigEdit]] = {}
    for one in asked:
        name = one["topic_name"]
        if name in found:
            raise ApiError(
                Code.BAD_REQUEST, f"data: topic {name} is named twice; put its configs together"
            )
        found[name] = edits_of(one["configs"])
    return found


def failures_of(refused: Mapping[str, KafkaFailure]) -> dict[str, Any]:
    told = {name: from_kafka(failed) for name, failed in refused.items()}
    return {"failures": [{"topic_name": name} | error.value() for name, error in told.items()]}


def edits_of(asked: Iterable[Mapping[str, Any]]) -> list[ConfigEdit]:
    """Return the changes of a batch; one without an operation sets a value."""
    found = []
    for one in asked:
        key, value = one["name"], one.get("value")
        if one.get("operation") == "DELETE":
            found.append(ConfigEdit(key=key, kind=EditKind.DELETE))
        elif value is None:
            raise ApiError(
                Code.BAD_REQUEST,
                f"data: {key} has no value; give one, or the operation DELETE to unset it",
            )
        else:
            found.append(ConfigEdit(key=key, value=value))
    return found
