"""The table of changes of access that the audit does not have yet."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("access", "0003_tokens"),
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
                ("event", models.CharField(max_length=40)),
                ("actor", models.CharField(max_length=150)),
                ("address", models.CharField(db_default="", default="", max_length=64)),
                ("subject", models.CharField(max_length=150)),
                ("details", models.JSONField()),
                ("made_at_ms", models.BigIntegerField()),
            ],
        ),
    ]
