"""How the author of a change authenticated: token, password, or console session."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0003_crashes_of_connectors"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="untoldchange",
            name="caller",
            field=models.CharField(db_default="", default="", max_length=12),
        ),
    ]
