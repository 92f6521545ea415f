"""Plans of runs that send dead letters again: stored as sealed, also by the first release."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

import pytest
from django.apps import apps

from connectors import models, redrives
from connectors.redrive_plans import OtherGroup, RedrivePlan, plan_in, stored
from connectors.runtime.letters import Addressee, Choice, Destination, Unsent
from connectors.runtime.task_settings import Reading
from gateway.kafka.values import Span

C: Final = "cluster-of-the-tests-0"
PLAN: Final = RedrivePlan(
    id="0a1b",
    cluster=C,
    name="c",
    generation=3,
    dead_topic="dead",
    destination=Destination.ORIGIN,
    choice=Choice(
        spans=(Span(partition=0, start=2, end=9),),
        picked=frozenset({(0, 2), (0, 8)}),
        exception="IOException",
        stage="TASK_PUT",
    ),
    to=Addressee(connector="c", reading=Reading(topics=("in",)), has_unnamed=True),
    topic_ids={"dead": "d1", "in": "i1"},
    chosen=2,
    chosen_bytes=70,
    looked=7,
    targets={"in": 2},
    unsent={Unsent.OTHER: 5},
    groups=(OtherGroup(name="g", lag=4, members=1),),
    hidden_groups=1,
)
# The form of the first release, in rows of its runs.
FLAT: Final[dict[str, Any]] = {
    "id": "0a1b",
    "cluster": C,
    "name": "c",
    "generation": 3,
    "dead_topic": "dead",
    "destination": "origin",
    "spans": [[0, 2, 9]],
    "picked": [[0, 2], [0, 8]],
    "exception": "IOException",
    "stage": "TASK_PUT",
    "topics": ["in"],
    "pattern": "",
    "has_unnamed": True,
    "topic_ids": {"dead": "d1", "in": "i1"},
    "chosen": 2,
    "chosen_bytes": 70,
    "looked": 7,
    "targets": {"in": 2},
    "unsent": {"OTHER": 5},
    "groups": [["g", 4, 1]],
    "hidden_groups": 1,
}


def test_stored_plan_has_the_keys_that_rows_of_every_release_have() -> None:
    assert stored(PLAN) == {
        "id": "0a1b",
        "cluster": C,
        "name": "c",
        "generation": 3,
        "dead_topic": "dead",
        "destination": "origin",
        "choice": {
            "spans": ({"partition": 0, "start": 2, "end": 9},),
            "picked": [(0, 2), (0, 8)],
            "exception": "IOException",
            "stage": "TASK_PUT",
            "cause": "",
        },
        "to": {
            "connector": "c",
            "reading": {
                "topics": ("in",),
                "pattern": "",
                "reset": "earliest",
                "max_records": 500,
            },
            "has_unnamed": True,
        },
        "topic_ids": {"dead": "d1", "in": "i1"},
        "chosen": 2,
        "chosen_bytes": 70,
        "looked": 7,
        "uncounted": 0,
        "cause_text": "",
        "caution": "",
        "targets": {"in": 2},
        "unsent": {"OTHER": 5},
        "groups": ({"name": "g", "lag": 4, "members": 1},),
        "hidden_groups": 1,
        "made_at_ms": 0,
    }


@pytest.mark.usefixtures("database")
def test_run_that_an_earlier_release_planned_keeps_its_plan() -> None:
    owner = models.Connector.objects.create(cluster=C, name="c", config={}, kind="sink")
    row = models.Redrive.objects.create(
        connector=owner, plan_id="0a1b", destination="origin", plan=FLAT, chosen=2, positions={}
    )
    migration = import_module("connectors.migrations.0012_plans_of_runs")

    for _ in range(2):
        migration.rewrite(apps, SimpleNamespace(connection=SimpleNamespace(alias="connect")))

        row.refresh_from_db()
        assert plan_in(row.plan) == PLAN
    [run] = redrives.runs(C, "c")
    assert (run.chosen, run.to_look, run.topics) == (2, 7, ("in",))
