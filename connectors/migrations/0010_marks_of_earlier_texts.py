"""Marks texts of an earlier release, which may repeat records, as parts that readers of all see."""

from typing import ClassVar

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Value
from django.db.models.functions import Concat, Left

# As in connectors.runtime.record_parts: a part that ends with the text, about any topic.
MARK = "\x02\x1f"
LINE_CHARS = 1000


def mark(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    alias = schema_editor.connection.alias
    tasks = apps.get_model("connectors", "Task").objects.using(alias)
    tasks.exclude(trace="").update(trace=Concat(Value(MARK), "trace"))
    lines = apps.get_model("connectors", "LogLine").objects.using(alias)
    lines.exclude(level="INFO").update(
        text=Concat(Value(MARK), Left("text", LINE_CHARS - len(MARK)))
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0009_claims_on_files"),
    ]

    operations: ClassVar = [
        migrations.RunPython(mark, migrations.RunPython.noop),
    ]
