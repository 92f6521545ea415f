"""Takes the table of failed logins over from the console, with its rows."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("access", "0004_untold_changes"),
        ("console", "0001_failed_logins"),
    ]

    operations: ClassVar = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="FailedLogin",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
                            ),
                        ),
                        ("source", models.CharField(max_length=64, unique=True)),
                        ("failures", models.PositiveIntegerField(default=0)),
                        ("window_started_at", models.DateTimeField(db_index=True)),
                    ],
                    options={"db_table": "console_failedlogin"},
                ),
            ]
        ),
    ]
