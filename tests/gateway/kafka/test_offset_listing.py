"""What groups have committed, also while their coordinator moves: nobody dies of the question."""

from collections.abc import Iterator

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from brokers.server.call import Call
from brokers.server.context import Context
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.groups import Groups
from gateway.kafka.offset_listing import WINDOW, committed_offsets
from gateway.kafka.values import Place
from tests.fakes.broker_thread import broker_beside
from tests.fakes.group_service import GroupService, MadeUpGroup, served

pytestmark = pytest.mark.slow

ORDERS = Place(topic="orders", partition=0)
MOVING = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class MovingService(GroupService):
    """Answers so many questions about offsets with an error first."""

    def __init__(self) -> None:
        super().__init__()
        self.error = ErrorCode.NONE
        self.refusals = 0
        self.asked = 0

    def refuse(self, error: ErrorCode, number: int) -> None:
        self.error, self.refusals, self.asked = error, number, 0

    def _fetch(
        self, context: Context, call: Call, request: OffsetFetchRequest
    ) -> OffsetFetchResponse:
        answer = super()._fetch(context, call, request)
        self.asked += 1
        if self.asked <= self.refusals:
            for group in answer.groups:
                group.error_code, group.topics = self.error, []
        return answer


@pytest.fixture(scope="module")
def started(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[MovingService, Connection]]:
    service = MovingService()
    service.groups = {
        f"g{number}": MadeUpGroup(offsets={("orders", 0): number}) for number in range(WINDOW + 5)
    }
    with served(service), broker_beside(tmp_path_factory.mktemp("broker")) as broker:
        yield service, Connection(bootstrap=broker.bootstrap)


@pytest.mark.parametrize("error", MOVING, ids=lambda error: error.name)
def test_a_coordinator_that_moves_is_asked_again(
    started: tuple[MovingService, Connection], error: ErrorCode
) -> None:
    service, connection = started
    service.refuse(error, 2)

    assert committed_offsets(connection, ["g7"]) == {"g7": {ORDERS: 7}}
    assert service.asked == 3


def test_groups_of_several_windows_are_all_found_while_some_move(
    started: tuple[MovingService, Connection],
) -> None:
    service, connection = started
    service.refuse(ErrorCode.NOT_COORDINATOR, 30)

    found = committed_offsets(connection, [*service.groups, "g1", "nobody"])

    assert found == {name: {ORDERS: int(name[1:])} for name in service.groups} | {"nobody": {}}


@pytest.mark.parametrize("error", MOVING, ids=lambda error: error.name)
def test_a_coordinator_that_does_not_arrive_is_a_failure_that_says_so(
    started: tuple[MovingService, Connection], error: ErrorCode
) -> None:
    service, connection = started
    service.refuse(error, 10**6)
    impatient = Connection(bootstrap=connection.bootstrap, timeout_s=1.0)

    with pytest.raises(KafkaFailure, match=f"group g1: .*coordinat.*{error.name}") as caught:
        Groups(impatient).offsets(["g1"])

    service.refuse(ErrorCode.NONE, 0)
    assert caught.value.kind is Kind.TIMEOUT


def test_another_error_is_not_asked_again(started: tuple[MovingService, Connection]) -> None:
    service, connection = started
    service.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED, 1)

    with pytest.raises(KafkaFailure, match="GROUP_AUTHORIZATION_FAILED"):
        committed_offsets(connection, ["g1"])
    assert service.asked == 1


def test_what_names_nothing_is_not_sent() -> None:
    away = Connection(bootstrap="127.0.0.1:1", timeout_s=0.3)
    for name in ("", "a\0b"):
        with pytest.raises(KafkaFailure, match="a group must be named"):
            committed_offsets(away, [name])


def test_a_cluster_that_is_away_ends_the_wait_at_the_deadline() -> None:
    away = Connection(bootstrap="127.0.0.1:1", timeout_s=0.3)

    with pytest.raises(KafkaFailure) as caught:
        committed_offsets(away, ["g"])

    assert caught.value.name in {"REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE"}
