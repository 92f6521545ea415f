"""Which metadata level a cluster is at, and which one each agent and broker knows."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("controlplane", "0002_cluster_secrets")]

    operations: ClassVar = [
        migrations.AddField(
            model_name=name,
            name="metadata_level",
            # Rows of code that knows nothing of levels are at the first one.
            field=models.SmallIntegerField(default=1, db_default=1),
        )
        for name in ("cluster", "agent", "broker")
    ]
