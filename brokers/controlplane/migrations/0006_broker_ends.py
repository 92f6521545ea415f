"""How each broker ended last without an order, when, and how often."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("controlplane", "0005_orders"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="broker",
            name="ended_how",
            field=models.CharField(blank=True, db_default="", default="", max_length=249),
        ),
        migrations.AddField(
            model_name="broker",
            name="ended_at_ms",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="broker",
            name="ended_times",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
