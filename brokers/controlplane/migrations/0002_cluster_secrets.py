"""The secrets of a cluster."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("controlplane", "0001_first_tables"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="ClusterSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("purpose", models.CharField(max_length=20)),
                ("key_id", models.IntegerField()),
                ("value", models.BinaryField(max_length=32)),
                ("created_at_ms", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "purpose", "key_id"), name="one_secret_per_key"
                    )
                ],
            },
        ),
    ]
