"""Rewrites the plans of runs that send dead letters again in the form that seals have too."""

from typing import Any, ClassVar, Final

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

KEPT: Final = (
    *("id", "cluster", "name", "generation", "dead_topic", "destination", "topic_ids", "chosen"),
    *("chosen_bytes", "looked", "targets", "unsent", "hidden_groups"),
)
# The first release had none of these.
NEWER: Final = ("uncounted", "cause_text", "caution")


def rewrite(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    rows = apps.get_model("connectors", "Redrive").objects.using(schema_editor.connection.alias)
    for pk, plan in rows.values_list("pk", "plan"):
        if "choice" not in plan:
            rows.filter(pk=pk).update(plan=nested(plan))


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Return a plan with its choice, addressee, spans and groups as objects of their own."""
    topics = flat["topics"]
    return {
        **{key: flat[key] for key in KEPT},
        **{key: flat[key] for key in NEWER if key in flat},
        "choice": {
            "spans": [
                {"partition": partition, "start": start, "end": end}
                for partition, start, end in flat["spans"]
            ],
            "picked": flat["picked"],
            "exception": flat["exception"],
            "stage": flat["stage"],
            "cause": flat.get("cause", ""),
        },
        "to": {
            "connector": flat["name"],
            "reading": None if topics is None else {"topics": topics, "pattern": flat["pattern"]},
            "has_unnamed": flat["has_unnamed"],
        },
        "groups": [
            {"name": name, "lag": lag, "members": members} for name, lag, members in flat["groups"]
        ],
    }


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0011_targets_of_workers"),
    ]

    operations: ClassVar = [
        migrations.RunPython(rewrite, migrations.RunPython.noop),
    ]
