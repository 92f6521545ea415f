"""Orders for brokers: who may ask for what, who takes them, and what is left of them."""

import pytest

from brokers.cluster.origins import Origin
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.controlplane.test_services import NOW_MS, new_cluster, register
from tests.database import project_home

project_home()

# Models can be imported only after the project is set up.
from brokers.controlplane import audit, models, orders, services  # noqa: E402
from brokers.controlplane.orders import Look, Order, OrderState, Verb  # noqa: E402
from brokers.controlplane.services.orders import (  # noqa: E402
    KEPT_ANSWERS,
    MAX_OPEN_LOGS,
    TAKEN_WITHIN_MS,
)

AGENT = "agent-1"
ALICE = Origin(actor="User:alice", address="10.0.0.1", session="digest")


def new_broker(cluster_id: str) -> int:
    """Register broker 1 on a host whose agent takes orders; return its epoch."""
    epoch = register(cluster_id).broker_epoch
    services.start_agent(
        cluster_id=cluster_id, agent_id=AGENT, host="host-a", boot_id="", now_ms=NOW_MS
    )
    return epoch


def ask(
    cluster_id: str, epoch: int, verb: Verb = Verb.RESTART, *, now_ms: int = NOW_MS, broker: int = 1
) -> int:
    return services.ask_order(
        cluster_id=cluster_id,
        broker_id=broker,
        broker_epoch=epoch,
        verb=verb,
        origin=ALICE,
        now_ms=now_ms,
    )


def look(cluster_id: str, *, agent: str = AGENT, now_ms: int = NOW_MS) -> Look:
    return orders.look(cluster_id=cluster_id, agent_id=agent, now_ms=now_ms)


def take(cluster_id: str, *numbers: int, now_ms: int = NOW_MS) -> list[Order]:
    return services.take_orders(
        cluster_id=cluster_id, agent_id=AGENT, numbers=numbers, now_ms=now_ms
    )


def end(cluster_id: str, number: int, *, answer: str = "") -> None:
    services.end_order(
        cluster_id=cluster_id,
        number=number,
        is_done=True,
        message="broker-1 serves",
        answer=answer,
        now_ms=NOW_MS + 500,
    )


def newest(cluster_id: str, *, now_ms: int = NOW_MS) -> Order:
    return orders.newest(cluster_id=cluster_id, now_ms=now_ms)[1]


def test_an_order_is_taken_once_and_its_end_is_told(database: str) -> None:
    cluster_id = new_cluster()
    number = ask(cluster_id, new_broker(cluster_id))

    (waiting,) = look(cluster_id).waiting
    assert (waiting.number, waiting.verb, waiting.actor) == (number, Verb.RESTART, "User:alice")
    assert look(cluster_id, agent="agent-2").waiting == ()
    assert [order.state for order in take(cluster_id, number)] == [OrderState.TAKEN]
    assert take(cluster_id, number) == []
    end(cluster_id, number)

    assert newest(cluster_id).state is OrderState.DONE
    assert newest(cluster_id).message == "broker-1 serves"
    assert look(cluster_id).waiting == ()


def test_who_ordered_what_stands_in_the_audit(database: str) -> None:
    cluster_id = new_cluster()
    epoch = new_broker(cluster_id)
    ask(cluster_id, epoch, Verb.STOP)
    ask(cluster_id, epoch, Verb.LOG)

    (entry,) = audit.entries(cluster_id=cluster_id)

    assert (entry.kind, entry.subject, entry.name) == ("stop broker", "broker", "1")
    assert (entry.actor, entry.via, entry.address) == ("User:alice", "browser", "10.0.0.1")
    assert audit.verify(cluster_id=cluster_id).faults == ()


def test_an_order_that_nobody_takes_expires_and_is_never_executed(database: str) -> None:
    cluster_id = new_cluster()
    number = ask(cluster_id, new_broker(cluster_id))
    late = NOW_MS + TAKEN_WITHIN_MS + 1

    assert look(cluster_id, now_ms=late).waiting == ()
    assert take(cluster_id, number, now_ms=late) == []
    assert newest(cluster_id, now_ms=late).state is OrderState.EXPIRED


def test_an_order_that_an_agent_does_not_know_is_left_and_hinders_no_other(database: str) -> None:
    cluster_id = new_cluster()
    epoch = new_broker(cluster_id)
    strange = ask(cluster_id, epoch, Verb.LOG)
    models.BrokerOrder.objects.filter(pk=strange).update(verb="defragment")
    number = ask(cluster_id, epoch)

    assert [order.number for order in look(cluster_id).waiting] == [number]


def test_an_order_that_an_agent_took_with_it_has_failed(database: str) -> None:
    cluster_id = new_cluster()
    number = ask(cluster_id, new_broker(cluster_id))
    take(cluster_id, number)

    assert newest(cluster_id, now_ms=NOW_MS + 10**6).state is OrderState.FAILED
    services.give_up_taken(cluster_id=cluster_id, agent_id=AGENT, now_ms=NOW_MS)
    assert "was restarted meanwhile" in newest(cluster_id).message


def test_another_incarnation_is_not_stopped_for_the_one_that_was_seen(database: str) -> None:
    cluster_id = new_cluster()
    epoch = new_broker(cluster_id)

    with pytest.raises(KafkaError, match="restarted since the page was shown") as refused:
        ask(cluster_id, epoch - 1)

    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    (entry,) = audit.entries(cluster_id=cluster_id)
    assert (entry.kind, entry.outcome) == ("restart broker", "INVALID_UPDATE_VERSION")


def test_a_broker_has_one_order_at_a_time(database: str) -> None:
    cluster_id = new_cluster()
    epoch = new_broker(cluster_id)
    number = ask(cluster_id, epoch)

    with pytest.raises(KafkaError, match="has an order to restart already, by User:alice"):
        ask(cluster_id, epoch, Verb.STOP)

    ask(cluster_id, epoch, Verb.LOG)
    take(cluster_id, number)
    end(cluster_id, number)
    ask(cluster_id, epoch, Verb.STOP)


def test_a_broker_that_is_not_there_has_no_orders(database: str) -> None:
    cluster_id = new_cluster()

    with pytest.raises(KafkaError, match="has no broker 9"):
        ask(cluster_id, 1, broker=9)


def test_an_agent_of_an_older_release_is_not_asked(database: str) -> None:
    cluster_id = new_cluster()
    epoch = new_broker(cluster_id)
    # As its code has it: one more epoch, and nothing of orders.
    models.Agent.objects.update(epoch=2)

    with pytest.raises(KafkaError, match=r"agent of host-a takes no orders.*samsa brokers restart"):
        ask(cluster_id, epoch)
    assert not orders.places(cluster_id=cluster_id)[1].takes_orders


def test_who_stopped_a_broker_stands_in_its_row_until_nobody_does(database: str) -> None:
    cluster_id = new_cluster()
    new_broker(cluster_id)

    def write(held: dict[int, tuple[str, int]]) -> None:
        services.write_holds(cluster_id=cluster_id, agent_id=AGENT, held=held, now_ms=NOW_MS)

    write({1: ("alice", 5)})
    place = orders.places(cluster_id=cluster_id)[1]
    assert (place.host, place.held_by, place.held_at_ms) == ("host-a", "alice", 5)
    assert look(cluster_id).held == {1: ("alice", 5)}
    write({})
    assert orders.places(cluster_id=cluster_id)[1].held_by == ""


def test_lines_of_a_log_are_kept_for_a_while(database: str) -> None:
    cluster_id = new_cluster()
    epoch = new_broker(cluster_id)
    answer = '{"lines": ["one"], "cursor": "7:3", "has_gap": false}'
    numbers = []
    for _ in range(KEPT_ANSWERS + 3):
        numbers.append(ask(cluster_id, epoch, Verb.LOG))
        take(cluster_id, numbers[-1])
        end(cluster_id, numbers[-1], answer=answer)

    def lines(number: int, broker: int = 1) -> object:
        found = orders.log_lines(
            cluster_id=cluster_id, broker_id=broker, number=number, now_ms=NOW_MS
        )
        return None if found is None or found[1] is None else found[1].lines

    assert lines(numbers[-1]) == ("one",)
    assert lines(numbers[0]) is None
    assert lines(numbers[-1], broker=2) is None


def test_logs_are_asked_for_by_few_at_once(database: str) -> None:
    cluster_id = new_cluster()
    epoch = new_broker(cluster_id)
    for _ in range(MAX_OPEN_LOGS):
        ask(cluster_id, epoch, Verb.LOG)

    with pytest.raises(KafkaError, match="ask again in a second"):
        ask(cluster_id, epoch, Verb.LOG)
    ask(cluster_id, epoch, Verb.LOG, now_ms=NOW_MS + TAKEN_WITHIN_MS + 1)
