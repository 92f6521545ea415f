"""Runs that send dead letters again."""

from typing import ClassVar

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0005_claims_of_authors"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Redrive",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("plan_id", models.CharField(max_length=64)),
                ("destination", models.CharField(max_length=12)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("RUNNING", "Running"),
                            ("DONE", "Done"),
                            ("STOPPED", "Stopped"),
                            ("FAILED", "Failed"),
                        ],
                        db_default="RUNNING",
                        max_length=12,
                    ),
                ),
                ("plan", models.JSONField()),
                ("chosen", models.BigIntegerField()),
                ("positions", models.JSONField()),
                ("mark", models.JSONField(default=dict)),
                ("is_in_doubt", models.BooleanField(db_default=False)),
                ("looked", models.BigIntegerField(db_default=0)),
                ("sent", models.BigIntegerField(db_default=0)),
                ("sent_bytes", models.BigIntegerField(db_default=0)),
                ("unsent", models.JSONField(default=dict)),
                ("reason", models.TextField(db_default="")),
                ("actor", models.CharField(max_length=200)),
                ("worker", models.CharField(db_default="", max_length=255)),
                ("epoch", models.BigIntegerField(db_default=0)),
                ("leased_until", models.DateTimeField(null=True)),
                ("queued_at", models.DateTimeField(null=True)),
                ("told_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("failures", models.IntegerField(db_default=0)),
                (
                    "began_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "changed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "connector",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="redrives",
                        to="connectors.connector",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connector", "plan_id"), name="one_redrive_per_plan"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "RUNNING")),
                        fields=("connector",),
                        name="one_running_redrive_per_connector",
                    ),
                ],
            },
        ),
    ]
