"""The rights that a connector needs, and their authors; none in rows of an older release."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0004_how_changes_came"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="connector",
            name="claims",
            field=models.JSONField(null=True),
        ),
    ]
