"""Calls the brokers of a cluster about one group: a few users at once, within a time limit."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeVar

from brokers.controlplane import selectors
from brokers.controlplane.services import GroupChangeKind
from console.group_changes.plans import GroupPlan, PlannedStep
from gateway.access.turns import Turns
from gateway.kafka.admin import Admin
from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.bounds import at_time, bounds
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.group_view import GroupView, view_of
from gateway.kafka.groups import Groups
from gateway.kafka.values import Place, Topic

T = TypeVar("T")

# A page has to answer within five seconds, with or without brokers: the wait for a turn, the time
# of all reads together, and the second by which the client library may be late.
TURN_WAIT_S: Final = 0.5
READ_S: Final = 3.4
# A change is written to disk; it has more time, since its outcome would be unknown otherwise.
CHANGE_S: Final = 5.0
# Half of the largest batch that topics accept by default, and the size of an offset record without
# the names of its group and its topic, with a margin.
CALL_BYTES: Final = 512 * 1024
RECORD_BYTES: Final = 120
# Each holds a thread and some of the library's own; changes of groups are made by hand.
TURNS: Final = Turns(
    places=4, queue=8, wait_s=TURN_WAIT_S, what="changes of groups are being looked at"
)
CLIENT_ID: Final = "samsa-console"
# Addresses to try; any broker names all others.
BOOTSTRAP_BROKERS: Final = 5


class Desk:
    """The calls to the brokers of one cluster about one group. Not thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._groups = Groups(connection)
        self._admin = Admin(connection)
        self._calls = AdminCalls(connection)

    def view(self, group: str) -> GroupView:
        return view_of(self._groups, group)

    def offsets(self, group: str) -> dict[Place, int]:
        return self._groups.offsets([group])[group]

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        return self._admin.find(names)

    def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        return self._in_time(bounds(self._calls, places))

    def at_time(self, places: Iterable[Place], ms: int) -> dict[Place, int | None]:
        return self._in_time(at_time(self._calls, places, ms))

    def carry_out(self, plan: GroupPlan) -> dict[Place, KafkaFailure]:
        """Execute a plan; return the partitions that were refused, or not reached.

        A failure before the first change propagates.
        """
        groups = Groups(replace(self._connection, until=Deadline(CHANGE_S)))
        if plan.kind is GroupChangeKind.DELETE_GROUP:
            groups.delete([plan.group])
            return {}
        steps = [step for step in plan.steps if step.before != step.after]
        size = _portion(plan)
        refused: dict[Place, KafkaFailure] = {}
        for begin in range(0, len(steps), size):
            some = steps[begin : begin + size]
            try:
                refused |= _call(groups, plan, some)
            except KafkaFailure as failed:
                if not begin:
                    raise
                return refused | dict.fromkeys((step.place for step in steps[begin:]), failed)
        return refused

    def _in_time(self, found: dict[Place, T]) -> dict[Place, T]:
        """Raise if the time is over: an answer that was cut off does not mean absence."""
        assert self._connection.until is not None, "made by `desk`"
        if self._connection.until.is_over():
            raise failure("REQUEST_TIMED_OUT", f"cluster at {self._connection.bootstrap}")
        return found


def _portion(plan: GroupPlan) -> int:
    """Return how many partitions one call may name: brokers write each call as one batch."""
    topic = max((len(step.place.topic) for step in plan.steps), default=0)
    return max(1, CALL_BYTES // (len(plan.group.encode()) + topic + RECORD_BYTES))


def _call(
    groups: Groups, plan: GroupPlan, steps: Sequence[PlannedStep]
) -> dict[Place, KafkaFailure]:
    if plan.kind is GroupChangeKind.DELETE_OFFSETS:
        return groups.delete_offsets_each(plan.group, [step.place for step in steps])
    wanted = {step.place: step.after for step in steps if step.after is not None}
    return groups.commit_each(plan.group, wanted)


@contextmanager
def desk(cluster_id: str) -> Iterator[Desk]:
    """Take a turn and connect to the brokers. Raises TooBusy if too many users do."""
    with TURNS.turn():
        yield Desk(
            Connection(
                bootstrap=bootstrap_of(cluster_id), client_id=CLIENT_ID, until=Deadline(READ_S)
            )
        )


def bootstrap_of(cluster_id: str) -> str:
    """Return broker addresses, those in service first."""
    brokers = selectors.brokers(cluster_id=cluster_id)
    if not brokers:
        raise failure(
            "BROKER_NOT_AVAILABLE", f"cluster {cluster_id}", "no broker has ever registered"
        )
    ordered = sorted(brokers, key=lambda broker: broker.is_fenced)[:BOOTSTRAP_BROKERS]
    return ",".join(f"{broker.host}:{broker.port}" for broker in ordered)
