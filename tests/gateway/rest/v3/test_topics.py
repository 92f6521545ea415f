"""Topics are made, changed and deleted by REST, and refused with the codes of the interface."""

from pathlib import Path
from typing import Any

import pytest

from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from tests.gateway.rest.asking import CLUSTER, Api

pytestmark = pytest.mark.slow


OF_TWO = {
    "data": [
        {"topic_name": name, "configs": [{"name": "retention.ms", "value": "1"}]}
        for name in ("orders", "clicks")
    ]
}


def code(answer: Any) -> tuple[int, int]:
    body = answer.json()
    assert set(body) == {"error_code", "message"}
    return answer.status_code, body["error_code"]


def test_a_topic_lives_from_creation_to_deletion(api: Api) -> None:
    made = api(
        "POST",
        "topics",
        {
            "topic_name": "brief",
            "partitions_count": 2,
            "configs": [{"name": "retention.ms", "value": "1000"}],
        },
    )
    grown = api("PATCH", "topics/brief", {"partitions_count": 4})
    config = api.get("topics/brief/configs/retention.ms")
    gone = api("DELETE", "topics/brief")

    assert made.status_code == 201
    assert made["Location"] == f"http://testserver/v3/clusters/{CLUSTER}/topics/brief"
    assert (made.json()["partitions_count"], made.json()["replication_factor"]) == (2, 1)
    assert (grown.status_code, grown.json()["partitions_count"]) == (200, 4)
    assert (config["value"], config["source"]) == ("1000", "DYNAMIC_TOPIC_CONFIG")
    assert (gone.status_code, gone.content) == (204, b"")
    assert code(api("GET", "topics/brief")) == (404, 40403)
    assert code(api("DELETE", "topics/brief")) == (404, 40403)


@pytest.mark.parametrize(
    ("topic", "lost"),
    [("__share_group_state", "all share groups"), ("__of_a_tool", "tool"), ("samples", "metrics")],
)
def test_a_topic_of_the_cluster_itself_is_deleted_by_force_only(
    api: Api, tmp_path: Path, topic: str, lost: str
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.json").write_text('{"metrics_topic": "samples"}')
    assert code(api("DELETE", f"topics/{topic}")) == (404, 40403)
    assert api("POST", "topics", {"topic_name": topic}).status_code == 201

    for query in ("", "?force=false"):
        refused = api("DELETE", f"topics/{topic}{query}")
        assert code(refused) == (409, 40904)
        assert lost in refused.json()["message"]
        assert "?force=true" in refused.json()["message"]
    assert api.get(f"topics/{topic}")["topic_name"] == topic

    assert api("DELETE", f"topics/{topic}?force=true").status_code == 204


def test_a_topic_that_is_only_validated_is_not_made(api: Api) -> None:
    answer = api("POST", "topics", {"topic_name": "never", "validate_only": True})

    assert answer.status_code == 200
    assert answer.json()["replication_factor"] == 1
    assert code(api("GET", "topics/never")) == (404, 40403)


def test_replicas_can_be_placed_by_hand(api: Api) -> None:
    placed = {"topic_name": "placed", "replicas_assignments": {"0": [1], "1": [1]}}

    assert api("POST", "topics", placed).json()["partitions_count"] == 2
    gaps = {"topic_name": "gaps", "replicas_assignments": {"0": [1], "2": [1]}}
    assert code(api("POST", "topics", gaps)) == (400, 400)
    both = placed | {"topic_name": "both", "partitions_count": 2}
    assert code(api("POST", "topics", both)) == (400, 400)


@pytest.mark.parametrize(
    "body",
    [
        {"topic_name": "orders"},
        {"topic_name": "a b"},
        {"topic_name": "wide", "replication_factor": 3},
        {"topic_name": "odd", "configs": [{"name": "no.such.config", "value": "1"}]},
    ],
)
def test_what_brokers_refuse_is_told_in_their_words(api: Api, body: dict[str, Any]) -> None:
    assert code(api("POST", "topics", body)) == (400, 40002)


@pytest.mark.parametrize(
    "body",
    [
        b"{bad",
        b"[]",
        b'{"topic_name": NaN}',
        b"[" * 100_000,
        b'{"topic_name": "\xff"}',
        {},
        {"topic_name": "a\0b"},
        {"topic_name": "a", "partitions_count": 2**70},
        {"topic_name": "a", "partitions_count": "many"},
        {"topic_name": ["a"]},
    ],
)
def test_a_body_that_is_no_request_is_refused(api: Api, body: Any) -> None:
    assert code(api("POST", "topics", body)) == (400, 400)


def test_http_mistakes_have_bodies_of_the_same_form(api: Api) -> None:
    assert code(api("PUT", "topics", {})) == (405, 405)
    assert code(api("GET", "topics", accept="text/html")) == (406, 406)
    assert code(api("POST", "topics", b" " * 1_048_577)) == (413, 413)
    assert code(api("GET", "nothing/here")) == (404, 404)
    assert code(api("GET", "/clusters/another-one")) == (404, 404)
    assert code(api("GET", "topics/orders/partitions/9")) == (404, 40402)
    assert code(api("GET", "topics/orders/partitions/x")) == (404, 404)
    assert code(api("GET", "topics/a%00b")) == (400, 400)
    assert code(api("GET", "topics/orders/partitions/0/reassignment")) == (404, 404)


def test_allowed_methods_are_told(api: Api) -> None:
    assert api("PUT", "topics", {})["Allow"] == "GET, HEAD, POST, OPTIONS"


def test_operations_are_told_to_who_asks(api: Api) -> None:
    assert "authorized_operations" not in api.get("topics/orders")
    [clicks, *_] = api.get("topics?includeAuthorizedOperations=true")["data"]
    found = api.get("topics/orders?include_authorized_operations=true")
    assert {"READ", "WRITE", "DELETE"} <= set(found["authorized_operations"])
    assert clicks["authorized_operations"] == found["authorized_operations"]


class TestSomebodyWithFewRights:
    @pytest.fixture
    def rights(self) -> Rights:
        return Rights(
            [
                Grant(role=Role.VIEWER, kind=Kind.TOPIC, pattern="ord*"),
                Grant(operation=Operation.VIEW, kind=Kind.GROUP, pattern="a*"),
            ]
        )

    def test_sees_what_the_rights_are_for(self, api: Api) -> None:
        assert [one["topic_name"] for one in api.get("topics")["data"]] == ["orders"]
        configs = api.get("topics/-/configs")["data"]
        assert {one["topic_name"] for one in configs} == {"orders"}
        groups = api.get("consumer-groups")["data"]
        assert [one["consumer_group_id"] for one in groups] == ["a/b"]

    @pytest.mark.parametrize(
        ("method", "address", "body"),
        [
            ("GET", "topics/clicks", None),
            ("GET", "topics/clicks/configs", None),
            ("GET", "brokers", None),
            ("GET", "broker-configs", None),
            ("GET", "consumer-groups/billing/lags", None),
            ("POST", "topics", {"topic_name": "orders-2"}),
            ("PATCH", "topics/orders", {"partitions_count": 9}),
            ("DELETE", "topics/orders", None),
            ("PUT", "topics/orders/configs/retention.ms", {"value": "1"}),
            ("POST", "broker-configs:alter", {"data": [{"name": "a", "value": "1"}]}),
            ("POST", "topics/-/configs:alter", OF_TWO),
            ("PUT", "brokers/1/configs/log.retention.ms", {"value": "1"}),
            ("GET", "acls", None),
        ],
    )
    def test_is_refused_the_rest(self, api: Api, method: str, address: str, body: Any) -> None:
        assert code(api(method, address, body)) == (403, 40301)


def test_nobody_is_let_in_without_being_known(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.rest.views import ApiView  # noqa: PLC0415 - after the settings

    monkeypatch.setattr(ApiView, "authentication_classes", ())

    answer = api("GET", "topics")

    assert code(answer) == (401, 40101)
    assert answer["WWW-Authenticate"].startswith("Basic ")
    assert "WWW-Authenticate" not in api("GET", "topics", sec_fetch_mode="cors")
