"""What programs of version 2 look up, on the address of the web server."""

import pytest

from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Role
from tests.gateway.rest.asking import Api

pytestmark = pytest.mark.slow

PARTITION = {
    "partition": 1,
    "leader": 1,
    "replicas": [{"broker": 1, "leader": True, "in_sync": True}],
}
MEDIA = "application/vnd.kafka.v2+json"


@pytest.fixture
def old(api: Api) -> Api:
    api.prefix = "/rest"
    return api


def test_topics_are_listed_and_shown(old: Api) -> None:
    assert old.get("/topics") == ["clicks", "orders"]
    found = old.get("/topics/orders")
    assert found["name"] == "orders"
    assert found["configs"]["cleanup.policy"] == "delete"
    assert found["partitions"][1] == PARTITION


def test_partitions_are_shown_with_their_offsets(old: Api) -> None:
    assert len(old.get("/topics/orders/partitions")) == 3
    assert old.get("/topics/orders/partitions/1") == PARTITION
    offsets = old.get("/topics/orders/partitions/1/offsets")
    assert offsets == {"beginning_offset": 0, "end_offset": 0}


def test_brokers_are_listed(old: Api) -> None:
    assert old.get("/brokers/") == {"brokers": [1]}


@pytest.mark.parametrize("media", [MEDIA, "application/vnd.kafka+json", "application/json"])
def test_an_answer_has_the_media_type_that_was_asked_for(old: Api, media: str) -> None:
    assert old("GET", "/topics", accept=media)["Content-Type"] == media


def test_what_is_not_there_is_told_with_the_codes_of_version_2(old: Api) -> None:
    assert old("GET", "/topics/nope").json()["error_code"] == 40401
    assert old("GET", "/topics/orders/partitions/9").json()["error_code"] == 40402
    for address in ("/topics/orders/partitions/foo", "/topics/orders/partitions/foo/offsets"):
        answer = old("GET", address)
        assert (answer.status_code, answer.json()["error_code"]) == (404, 404)
    assert old("GET", "/topics", accept="image/png").json()["error_code"] == 406
    assert old("GET", "/nope").json()["error_code"] == 404


class TestSomebodyWithFewRights:
    @pytest.fixture
    def rights(self) -> Rights:
        return Rights([Grant(role=Role.VIEWER, kind=Kind.TOPIC, pattern="ord*")])

    def test_sees_what_the_rights_are_for(self, old: Api) -> None:
        assert old.get("/topics") == ["orders"]
        assert old("GET", "/topics/clicks").json()["error_code"] == 40301
        assert old("GET", "/brokers").json()["error_code"] == 40301
