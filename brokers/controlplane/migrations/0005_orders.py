"""Orders for brokers, which agents take them, and who stopped which broker."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("controlplane", "0004_plans_and_audit"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="agent",
            name="orders_epoch",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="broker",
            name="held_at_ms",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="broker",
            name="held_by",
            field=models.CharField(blank=True, db_default="", default="", max_length=249),
        ),
        migrations.CreateModel(
            name="BrokerOrder",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("broker_id", models.IntegerField()),
                ("broker_epoch", models.BigIntegerField()),
                ("agent_id", models.CharField(max_length=36)),
                ("verb", models.CharField(max_length=12)),
                ("cursor", models.CharField(blank=True, max_length=64)),
                ("actor", models.CharField(max_length=249)),
                ("asked_at_ms", models.BigIntegerField()),
                ("deadline_ms", models.BigIntegerField()),
                ("state", models.CharField(max_length=12)),
                ("taken_at_ms", models.BigIntegerField(db_default=0, default=0)),
                ("ended_at_ms", models.BigIntegerField(db_default=0, default=0)),
                (
                    "message",
                    models.CharField(blank=True, db_default="", default="", max_length=1000),
                ),
                ("answer", models.TextField(blank=True, db_default="", default="")),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="orders",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["agent_id", "state"], name="orders_by_agent"),
                    models.Index(fields=["cluster", "broker_id"], name="orders_by_broker"),
                ],
            },
        ),
    ]
