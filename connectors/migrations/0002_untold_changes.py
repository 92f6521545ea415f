"""The table of changes of connectors that the audit does not have yet."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0001_first_tables"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="UntoldChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.CharField(max_length=22)),
                ("event", models.CharField(max_length=40)),
                ("actor", models.CharField(max_length=200)),
                ("address", models.CharField(db_default="", default="", max_length=64)),
                ("subject", models.CharField(max_length=249)),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                ("made_at_ms", models.BigIntegerField()),
            ],
        ),
    ]
