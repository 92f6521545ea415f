"""Columns for ended worker processes: the connector they prepared, and the task that hung."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0002_untold_changes"),
    ]

    operations: ClassVar = [
        migrations.AddField("connector", "preparing_at", models.DateTimeField(null=True)),
        migrations.AddField("connector", "crashes", models.IntegerField(db_default=0)),
        migrations.AddField("connector", "due_at", models.DateTimeField(null=True)),
        migrations.AddField("task", "taken_at", models.DateTimeField(null=True)),
        migrations.AddField("task", "hung_at", models.DateTimeField(null=True)),
    ]
