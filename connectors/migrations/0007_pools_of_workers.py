"""Pools of workers for some connectors only, such as those of Spark."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0006_dead_letters_sent_again"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="connector",
            name="pool",
            field=models.CharField(db_default="", default="", max_length=12),
        ),
        migrations.AddField(
            model_name="worker",
            name="pool",
            field=models.CharField(db_default="", default="", max_length=12),
        ),
    ]
