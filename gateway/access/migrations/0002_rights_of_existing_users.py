"""Give the users of a former release what they could do there: superusers all, others to look."""

from typing import ClassVar

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def give(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    alias = schema_editor.connection.alias
    users = apps.get_model("auth", "User").objects.using(alias)
    grants = apps.get_model("access", "Grant").objects.using(alias)
    for number, is_superuser in users.values_list("pk", "is_superuser"):
        role = "admin" if is_superuser else "viewer"
        grants.get_or_create(
            user_id=number, role=role, operation="", cluster="*", kind="", pattern="*"
        )


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("access", "0001_first_tables"),
    ]

    operations: ClassVar = [
        # Back: the tables go with the migration before this one.
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
