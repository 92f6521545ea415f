"""Leaves the table of failed logins to the app of access rights."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("console", "0001_failed_logins"),
        ("access", "0005_failed_logins"),
    ]

    operations: ClassVar = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="FailedLogin")]
        ),
    ]
