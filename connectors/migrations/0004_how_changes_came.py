"""How the author of a change came: with a token, a password, or a session of the console."""

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
