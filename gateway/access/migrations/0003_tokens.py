"""The tables of API tokens and of their rights."""

from typing import ClassVar

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("access", "0002_rights_of_existing_users"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Token",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64, unique=True)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("prefix", models.CharField(max_length=20)),
                ("created_by", models.CharField(max_length=150)),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("expires_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("last_address", models.CharField(db_default="", default="", max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="TokenGrant",
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
                    "token",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="grants",
                        to="access.token",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="tokengrant",
            constraint=models.UniqueConstraint(
                fields=["token", "role", "operation", "cluster", "kind", "pattern"],
                name="access_token_grant_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="tokengrant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("role", ""), models.Q(("operation", ""), _negated=True)),
                    models.Q(models.Q(("role", ""), _negated=True), ("operation", "")),
                    _connector="OR",
                ),
                name="access_token_grant_role_or_operation",
            ),
        ),
    ]
