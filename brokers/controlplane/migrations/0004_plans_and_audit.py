"""Versions that plans rest on, the kinds of changes, and the audit with its chain."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("controlplane", "0003_metadata_level"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="broker",
            name="version",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="change",
            name="kind",
            field=models.CharField(blank=True, db_default="", default="", max_length=24),
        ),
        migrations.AddField(
            model_name="cluster",
            name="audit_digest",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="cluster",
            name="audit_first",
            field=models.BigIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="cluster",
            name="audit_number",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="resourceconfig",
            name="version",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.BigIntegerField()),
                ("made_at_ms", models.BigIntegerField()),
                ("actor", models.CharField(max_length=249)),
                ("via", models.CharField(max_length=24)),
                ("client_id", models.CharField(blank=True, max_length=249)),
                ("address", models.CharField(blank=True, max_length=45)),
                ("session", models.CharField(blank=True, max_length=64)),
                ("kind", models.CharField(max_length=24)),
                ("subject", models.CharField(max_length=24)),
                ("name", models.CharField(blank=True, max_length=249)),
                ("outcome", models.CharField(max_length=72)),
                ("message", models.CharField(blank=True, max_length=1000)),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                ("version", models.BigIntegerField()),
                ("previous", models.CharField(blank=True, max_length=64)),
                ("digest", models.CharField(max_length=64)),
                ("times", models.BigIntegerField(db_default=1, default=1)),
                ("last_at_ms", models.BigIntegerField(db_default=0, default=0)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="audit",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["cluster", "name", "number"], name="audit_by_name"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "number"), name="one_audit_entry_per_number"
                    )
                ],
            },
        ),
    ]
