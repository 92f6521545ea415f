"""The call to librdkafka itself: what it is given, and what goes wrong on the way."""

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.offset_deletion import MAX_PLACES, delete_offsets
from gateway.kafka.values import Place
from tests.fakes.broker_thread import broker_beside
from tests.fakes.group_service import GroupService, MadeUpGroup, served

ORDERS = Place(topic="orders", partition=0)
# Nobody listens on a port that needs the right to.
AWAY = Connection(bootstrap="127.0.0.1:1", timeout_s=0.3)


@pytest.mark.slow
def test_offsets_of_several_topics_are_deleted_and_absent_groups_are_named(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    service = GroupService()
    service.groups["readers"] = MadeUpGroup(
        offsets={("orders", 0): 1, ("orders", 1): 2, ("clicks", 0): 3}
    )
    with served(service), broker_beside(tmp_path_factory.mktemp("broker")) as broker:
        connection = Connection(bootstrap=broker.bootstrap)

        delete_offsets(connection, "readers", [ORDERS, Place(topic="clicks", partition=0)])

        assert service.groups["readers"].offsets == {("orders", 1): 2}
        with pytest.raises(KafkaFailure, match=r"group nobody: .*GROUP_ID_NOT_FOUND") as caught:
            delete_offsets(connection, "nobody", [ORDERS])
        assert caught.value.kind is Kind.NOT_FOUND


@pytest.mark.slow
def test_a_cluster_that_is_away_ends_the_wait_at_the_deadline() -> None:
    with pytest.raises(KafkaFailure) as caught:
        delete_offsets(AWAY, "readers", [ORDERS])

    assert caught.value.name in {"REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE"}


@pytest.mark.parametrize(
    ("group", "places"),
    [("readers", []), ("", [ORDERS]), ("a\0b", [ORDERS]), ("g", [Place(topic="", partition=0)])],
)
def test_what_names_nothing_is_not_sent(group: str, places: list[Place]) -> None:
    with pytest.raises(KafkaFailure, match="a group and partitions must be named"):
        delete_offsets(AWAY, group, places)


def test_more_partitions_than_one_request_may_name_are_refused() -> None:
    with pytest.raises(KafkaFailure, match=f"{MAX_PLACES + 1} partitions are named"):
        delete_offsets(AWAY, "readers", [ORDERS] * (MAX_PLACES + 1))


def test_a_property_that_does_not_exist_is_told_in_the_librarys_words() -> None:
    connection = Connection(bootstrap="127.0.0.1:1", properties={"no.such": "1"})

    with pytest.raises(KafkaFailure, match=r"no\.such") as caught:
        delete_offsets(connection, "readers", [ORDERS])

    assert caught.value.kind is Kind.USAGE
