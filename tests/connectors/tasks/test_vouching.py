"""A connector whose author loses a right ends, says why, and comes back with the right."""

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from connectors import authors
from connectors.models import Connector, Task
from connectors.runtime.ports import Verdict
from connectors.tasks import leases, planning, processes, vouching, workers
from tests.builders import users
from tests.connectors.tasks.rows import CLUSTER, add_connector, add_task, again, taken

pytestmark = pytest.mark.usefixtures("database")


def claims(user: User) -> list[dict[str, object]]:
    told = {"kind": "user", "name": user.username, "number": user.pk}
    return [{**told, "operation": "produce", "pattern": "t"}]


class Sent:
    """Queues that count what is to be prepared."""

    def __init__(self) -> None:
        self.prepared = 0

    def run(self, *_: object) -> None:
        pass

    def prepare(self, *_: object) -> None:
        self.prepared += 1

    def purge(self, *_: object) -> None:
        pass


@pytest.fixture
def ann() -> User:
    workers.register(CLUSTER, "w1", processes.Process(number=1, began=5), is_new=True)
    return users.user("ann")


def plan() -> int:
    sent = Sent()
    planning.plan(CLUSTER, sent)
    return sent.prepared


def test_a_running_connector_ends_with_the_reason(ann: User) -> None:
    row = add_connector(claims=claims(ann))
    task = add_task(row)
    lease = taken(task)
    assert vouching.end_unvouched(CLUSTER) == 0

    ann.delete()

    assert vouching.end_unvouched(CLUSTER) == 1
    # The slice that runs hears of it; until it has ended the connector is not failed yet.
    assert leases.verdict(lease) is Verdict.STOP
    assert plan() == 0
    Task.objects.filter(pk=task.pk).update(leased_until=None)
    assert plan() == 0
    row.refresh_from_db()
    assert (row.state, row.tasks.count()) == ("FAILED", 0)
    assert row.trace.startswith("The connector runs with the rights of user ann, which is disabled")
    assert vouching.end_unvouched(CLUSTER) == 0


def test_no_tasks_are_made_before_the_right_is_back(ann: User) -> None:
    row = add_connector(claims=claims(ann), planned_generation=0, state="UNASSIGNED")
    User.objects.update(is_active=False)
    plan()
    row.refresh_from_db()
    assert row.state == "FAILED"

    User.objects.update(is_active=True)
    Connector.objects.update(generation=2, state="UNASSIGNED")

    assert plan() == 1
    assert ann.username in str(row.claims)


def test_users_that_cannot_be_asked_for_end_nothing_and_begin_nothing(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = add_task(add_connector(claims=claims(ann)))
    add_connector("d", claims=claims(ann), planned_generation=0)
    ann.delete()

    def away(_: object) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(authors, "_rights_of", away)

    assert vouching.end_unvouched(CLUSTER) == 0
    assert plan() == 0
    assert again(task).generation == task.connector.generation
    assert Connector.objects.get(name="d").state != "FAILED"


def test_what_is_stopped_is_left_alone_and_what_rests_upon_nobody_too(ann: User) -> None:
    add_task(add_connector(claims=claims(ann), target="STOPPED"))
    add_task(add_connector("of-an-older-release", claims=None))
    ann.delete()

    assert vouching.end_unvouched(CLUSTER) == 0
