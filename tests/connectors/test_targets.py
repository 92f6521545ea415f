"""A config whose servers connectors may not reach is refused at its key, before anything runs."""

import pytest

from connectors import models, registry, selectors, services
from connectors.changes import By
from connectors.refusals import Invalid
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import FULL_ADMIN, Rights

pytestmark = pytest.mark.usefixtures("database")
C = "cluster-of-the-tests-0"
ANN = By(caller=Caller(kind=CallerKind.USER, name="ann", rights=Rights((FULL_ADMIN,))))
S3 = {
    "flush.size": "1",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "s3.bucket.name": "bucket",
    "aws.access.key.id": "a",
    "aws.secret.access.key": "b",
}
POSTGRES = {"connection.url": "jdbc:postgresql://127.0.0.1:5432/x", "connection.user": "u"}
CAPTURE = {"database.hostname": "10.0.0.9", "database.user": "u", "database.password": "p"}
# Of each plugin that connects to a server: the key that names it, and a config with it.
CONFIGS = {
    "samsa.http.sink": ("http.url", {"http.url": "http://127.0.0.1:8000/in"}),
    "samsa.s3.sink": ("store.url", {"store.url": "http://127.0.0.1:9000"} | S3),
    "samsa.postgres.sink": ("connection.url", POSTGRES),
    "samsa.postgres.source": ("connection.url", POSTGRES | {"topic.prefix": "t", "mode": "bulk"}),
    "samsa.postgres.capture": (
        "database.hostname",
        CAPTURE | {"database.dbname": "d", "topic.prefix": "t"},
    ),
}


def config_of(plugin: str) -> dict[str, str]:
    kind = registry.kind_of(selectors.plugin_of(plugin))
    topics = {"topics": "in"} if kind == "sink" else {}
    return {"connector.class": plugin, "name": "c", **topics, **CONFIGS[plugin][1]}


def errors_of(plugin: str, url: str = "", *, is_deep: bool = True) -> dict[str, str]:
    config = config_of(plugin) | ({"http.url": url} if url else {})
    found = selectors.validate(ANN.caller, C, selectors.plugin_of(plugin), config, is_deep=is_deep)
    return {entry.key.name: entry.value.errors[0] for entry in found.entries if entry.value.errors}


def worker(name: str, targets: str) -> None:
    models.Worker.objects.create(cluster=C, name=name, host="h", process_id=1, targets=targets)


def test_every_plugin_with_a_key_for_a_server_says_where_it_leads() -> None:
    words = ("url", "hostname", "host")
    named = {
        (plugin.name, key.name)
        for plugin in registry.classes()
        for key in plugin.definition()
        if key.name.rpartition(".")[2] in words
        and plugin.__module__.startswith("connectors.plugins.")
    }
    judged = {
        (plugin.name, key.name)
        for plugin in registry.classes()
        for key in plugin.definition()
        if key.targets is not None
    }

    assert named <= judged
    assert {plugin for plugin, _ in judged} == set(CONFIGS)


@pytest.mark.parametrize("plugin", CONFIGS)
@pytest.mark.parametrize("is_deep", [True, False])
def test_address_that_connectors_may_not_reach_is_refused_at_its_key(
    plugin: str, *, is_deep: bool
) -> None:
    found = errors_of(plugin, is_deep=is_deep)
    assert len(found) == 1, found
    [(key, error)] = found.items()

    assert key == CONFIGS[plugin][0]
    assert "which connectors may not reach; an administrator allows it by" in error
    assert "SAMSA_CONNECT_TARGETS=" in error


def test_connector_with_a_forbidden_target_is_not_created() -> None:
    with pytest.raises(Invalid, match="is a loopback address, which connectors may not reach"):
        services.create(ANN, C, "c", config_of("samsa.http.sink"))


def test_rules_of_the_workers_decide_and_not_those_of_the_console(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SAMSA_CONNECT_TARGETS", "127.0.0.1")
    of_this_process = errors_of("samsa.http.sink")
    worker("w1", "")
    of_a_worker = errors_of("samsa.http.sink")
    worker("w2", "127.0.0.1:8000")

    assert of_this_process == {}
    assert "http.url" in of_a_worker
    assert errors_of("samsa.http.sink") == {}
    assert "http.url" in errors_of("samsa.http.sink", "http://127.0.0.1:8001/")


def test_name_that_is_not_known_here_is_left_to_the_worker() -> None:
    assert errors_of("samsa.http.sink", "https://nowhere.invalid/") == {}
