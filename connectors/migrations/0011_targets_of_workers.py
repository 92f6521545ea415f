"""Adds the targets that each worker allows, by which forms judge the hosts of a config."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("connectors", "0010_marks_of_earlier_texts"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="worker",
            name="targets",
            field=models.TextField(db_default="", default=""),
        ),
    ]
