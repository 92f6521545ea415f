"""Configs of topics, of a broker and of all brokers, set and unset by REST."""

from typing import Any

import pytest

from tests.gateway.rest.asking import Api

pytestmark = pytest.mark.slow

RETENTION = "log.retention.ms"
OF_TOPIC = "topics/orders/configs"


@pytest.mark.parametrize(
    ("configs", "name", "source"),
    [
        (OF_TOPIC, "retention.ms", "DYNAMIC_TOPIC_CONFIG"),
        ("brokers/1/configs", RETENTION, "DYNAMIC_BROKER_CONFIG"),
        ("broker-configs", RETENTION, "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    ],
)
def test_a_config_is_set_and_unset(api: Api, configs: str, name: str, source: str) -> None:
    one = f"{configs}/{name}"

    assert api("PUT", one, {"value": "7777777"}).status_code == 204
    found = api.get(one)
    assert (found["value"], found["source"], found["is_default"]) == ("7777777", source, False)
    assert found["synonyms"][0] == {"name": found["name"], "value": "7777777", "source": source}
    assert api("DELETE", one).status_code == 204
    gone = api("GET", one).json()
    assert gone.get("source") != source


@pytest.mark.parametrize("configs", [OF_TOPIC, "brokers/1/configs", "broker-configs"])
def test_a_batch_is_done_whole_or_not_at_all(api: Api, configs: str) -> None:
    # Brokers take names that Kafka does not know.
    known, wrong = ("retention.ms", "no.such") if configs == OF_TOPIC else (RETENTION, "log.dirs")
    bad = {"data": [{"name": known, "value": "5555555"}, {"name": wrong, "value": "1"}]}
    dry = {"data": bad["data"][:1], "validate_only": True}

    refused = api("POST", f"{configs}:alter", bad)

    assert refused.json()["error_code"] == 40002
    assert wrong in refused.json()["message"]
    assert api("POST", f"{configs}:alter", dry).status_code == 204
    assert api("GET", f"{configs}/{known}").json().get("value") != "5555555"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": []},
        {"data": [{"name": "retention.ms"}]},
        {"data": [{"name": "retention.ms", "value": "1", "operation": "APPEND"}]},
        {"data": {"name": "retention.ms"}},
    ],
)
def test_a_batch_that_says_nothing_is_refused(api: Api, body: dict[str, Any]) -> None:
    answer = api("POST", f"{OF_TOPIC}:alter", body)

    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)


def test_a_value_is_needed_to_set_one(api: Api) -> None:
    assert api("PUT", f"{OF_TOPIC}/retention.ms", {"value": None}).status_code == 400
    assert api("PUT", f"{OF_TOPIC}/retention.ms", {}).status_code == 400


def test_configs_of_nothing_are_not_found(api: Api) -> None:
    assert api("GET", "topics/nope/configs").json()["error_code"] == 40403
    assert api("GET", f"{OF_TOPIC}/no.such").json()["error_code"] == 404
    assert api("GET", "brokers/9/configs").json()["error_code"] == 404
    assert api("PUT", "brokers/9/configs/a", {"value": "1"}).json()["error_code"] == 404


ALL = "topics/-/configs:alter"


def edits(*topics: tuple[str, str, str | None]) -> dict[str, Any]:
    return {
        "data": [
            {"topic_name": topic, "configs": [{"name": name, "value": value}]}
            for topic, name, value in topics
        ]
    }


def test_configs_of_several_topics_are_altered_in_one_call(api: Api) -> None:
    wanted = edits(("orders", "retention.ms", "6666666"), ("clicks", "retention.ms", "6666667"))
    unset = [{"name": "retention.ms", "operation": "DELETE"}]

    dry = api("POST", ALL, wanted | {"validate_only": True})
    before = api.get(f"{OF_TOPIC}/retention.ms")["value"]
    done = api("POST", ALL, wanted)

    assert (dry.status_code, done.status_code, done.content) == (204, 204, b"")
    assert before != "6666666"
    assert api.get(f"{OF_TOPIC}/retention.ms")["value"] == "6666666"
    assert api.get("topics/clicks/configs/retention.ms")["value"] == "6666667"
    back = {"data": [{"topic_name": name, "configs": unset} for name in ("orders", "clicks")]}
    assert api("POST", ALL, back).status_code == 204
    assert api.get(f"{OF_TOPIC}/retention.ms")["is_default"]


def test_a_topic_that_brokers_refuse_is_told_beside_those_that_changed(api: Api) -> None:
    wanted = edits(("orders", "cleanup.policy", "none.such"), ("clicks", "retention.ms", "1234567"))

    answer = api("POST", ALL, wanted)

    assert answer.status_code == 207
    [failed] = answer.json()["failures"]
    assert (failed["topic_name"], failed["error_code"]) == ("orders", 40002)
    assert "none.such" in failed["message"]
    assert api.get("topics/clicks/configs/retention.ms")["value"] == "1234567"
    assert api("DELETE", "topics/clicks/configs/retention.ms").status_code == 204


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (("nope", "retention.ms", "1"), (404, 40403)),
        (("clicks", "no.such", "1"), (404, 404)),
        (("orders", "retention.bytes", "1"), (400, 400)),
        (("clicks", "retention.ms", None), (400, 400)),
    ],
)
def test_nothing_changes_where_one_of_several_topics_is_a_mistake(
    api: Api, second: tuple[str, str, str | None], code: tuple[int, int]
) -> None:
    answer = api("POST", ALL, edits(("orders", "retention.ms", "4444444"), second))

    assert (answer.status_code, answer.json()["error_code"]) == code
    assert api.get(f"{OF_TOPIC}/retention.ms")["value"] != "4444444"


def test_more_topics_than_fit_are_refused_with_the_limit(api: Api) -> None:
    answer = api("POST", ALL, edits(*((f"t{n}", "retention.ms", "1") for n in range(101))))

    assert answer.status_code == 400
    assert "100" in answer.json()["message"]
