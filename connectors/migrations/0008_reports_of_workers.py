"""What workers say of what their tasks run in, kept when they are gone."""

from typing import ClassVar

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0007_pools_of_workers"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="WorkerReport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.CharField(max_length=22)),
                ("name", models.CharField(max_length=255, unique=True)),
                ("pool", models.CharField(max_length=12)),
                ("host", models.CharField(max_length=255)),
                ("told", models.JSONField()),
                (
                    "told_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
    ]
