"""The tables of users' rights and sessions."""

from typing import ClassVar

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies: ClassVar = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Account",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("must_change_password", models.BooleanField(db_default=False, default=False)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="account",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "session_key",
                    models.CharField(
                        max_length=40, primary_key=True, serialize=False, verbose_name="session key"
                    ),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                (
                    "started_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "active_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("address", models.CharField(db_default="", default="", max_length=64)),
                ("agent", models.CharField(db_default="", default="", max_length=200)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("role", models.CharField(blank=True, db_default="", default="", max_length=20)),
                (
                    "operation",
                    models.CharField(blank=True, db_default="", default="", max_length=20),
                ),
                ("cluster", models.CharField(db_default="*", default="*", max_length=22)),
                ("kind", models.CharField(blank=True, db_default="", default="", max_length=20)),
                ("pattern", models.CharField(db_default="*", default="*", max_length=249)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="grants",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "role", "operation", "cluster", "kind", "pattern"),
                        name="access_grant_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("role", ""), models.Q(("operation", ""), _negated=True)),
                            models.Q(models.Q(("role", ""), _negated=True), ("operation", "")),
                            _connector="OR",
                        ),
                        name="access_grant_role_or_operation",
                    ),
                ],
            },
        ),
    ]
