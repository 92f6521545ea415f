"""The first tables of connectors."""

from typing import ClassVar

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies: ClassVar = []

    operations: ClassVar = [
        migrations.CreateModel(
            name="Beat",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.CharField(max_length=22, unique=True)),
                ("holder", models.CharField(max_length=255)),
                ("until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.CharField(db_default="", max_length=22)),
                ("name", models.CharField(max_length=255, unique=True)),
                ("host", models.CharField(max_length=255)),
                ("boot_id", models.CharField(db_default="", max_length=64)),
                ("process_id", models.BigIntegerField()),
                ("process_began", models.BigIntegerField(db_default=0)),
                (
                    "started_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "seen_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Connector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.CharField(max_length=22)),
                ("name", models.CharField(max_length=249)),
                ("plugin", models.CharField(max_length=255)),
                ("version", models.CharField(db_default="", max_length=40)),
                ("kind", models.CharField(max_length=12)),
                ("config", models.JSONField()),
                (
                    "target",
                    models.CharField(
                        choices=[
                            ("STARTED", "Started"),
                            ("PAUSED", "Paused"),
                            ("STOPPED", "Stopped"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("UNASSIGNED", "Unassigned"),
                            ("RUNNING", "Running"),
                            ("PAUSED", "Paused"),
                            ("FAILED", "Failed"),
                            ("RESTARTING", "Restarting"),
                            ("STOPPED", "Stopped"),
                        ],
                        max_length=12,
                    ),
                ),
                ("generation", models.BigIntegerField(db_default=1)),
                ("planned_generation", models.BigIntegerField(db_default=0)),
                ("worker", models.CharField(db_default="", max_length=255)),
                ("planning_since", models.DateTimeField(null=True)),
                ("trace", models.TextField(db_default="")),
                ("topics", models.JSONField(default=list)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "changed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "name"), name="one_connector_per_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LogLine",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("task", models.IntegerField(null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("level", models.CharField(max_length=12)),
                ("text", models.CharField(max_length=1000)),
                (
                    "connector",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lines",
                        to="connectors.connector",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["connector", "id"], name="lines_by_connector")],
            },
        ),
        migrations.CreateModel(
            name="SourceOffset",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                ("place", models.JSONField()),
                ("offset", models.JSONField()),
                ("epoch", models.BigIntegerField(db_default=0)),
                (
                    "changed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "connector",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="offsets",
                        to="connectors.connector",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connector", "digest"), name="one_offset_per_place"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.IntegerField()),
                ("generation", models.BigIntegerField()),
                ("config", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("UNASSIGNED", "Unassigned"),
                            ("RUNNING", "Running"),
                            ("PAUSED", "Paused"),
                            ("FAILED", "Failed"),
                            ("RESTARTING", "Restarting"),
                            ("STOPPED", "Stopped"),
                        ],
                        max_length=12,
                    ),
                ),
                ("worker", models.CharField(db_default="", max_length=255)),
                ("assigned", models.CharField(db_default="", max_length=255)),
                ("epoch", models.BigIntegerField(db_default=0)),
                ("leased_until", models.DateTimeField(null=True)),
                ("queued_at", models.DateTimeField(null=True)),
                ("served_at", models.DateTimeField(null=True)),
                ("slice_ended_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("retries", models.IntegerField(db_default=0)),
                ("idle_slices", models.IntegerField(db_default=0)),
                ("crashes", models.IntegerField(db_default=0)),
                ("restarts", models.IntegerField(db_default=0)),
                ("trace", models.TextField(db_default="")),
                ("figures", models.JSONField(default=dict)),
                (
                    "connector",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tasks",
                        to="connectors.connector",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connector", "number"), name="one_task_per_number"
                    )
                ],
            },
        ),
    ]
