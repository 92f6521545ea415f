"""The first tables of the control plane."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies: ClassVar = []

    operations: ClassVar = [
        migrations.CreateModel(
            name="Cluster",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster_id", models.CharField(max_length=22, unique=True)),
                ("name", models.CharField(max_length=249, unique=True)),
                ("version", models.BigIntegerField(default=0)),
                ("change_id", models.BinaryField(max_length=16)),
                ("partition_count", models.BigIntegerField(default=0)),
                ("created_at_ms", models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="ProducerIds",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("next_id", models.BigIntegerField(default=0)),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="producer_ids",
                        to="controlplane.cluster",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Topic",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("topic_id", models.BinaryField(max_length=16)),
                ("name", models.CharField(max_length=249)),
                ("collision_key", models.CharField(max_length=249)),
                ("version", models.BigIntegerField()),
                ("created_at_ms", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="topics",
                        to="controlplane.cluster",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Partition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("index", models.IntegerField()),
                ("replicas", models.JSONField()),
                ("isr", models.JSONField()),
                ("leader", models.IntegerField()),
                ("leader_epoch", models.IntegerField(default=0)),
                ("partition_epoch", models.IntegerField(default=0)),
                (
                    "topic",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="partitions",
                        to="controlplane.topic",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.BigIntegerField()),
                ("change_id", models.BinaryField(max_length=16)),
                ("encoded", models.BinaryField()),
                ("summary", models.CharField(max_length=249)),
                ("actor", models.CharField(max_length=249)),
                ("made_at_ms", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "version"), name="one_change_per_version"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Broker",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("broker_id", models.IntegerField()),
                ("epoch", models.BigIntegerField()),
                ("incarnation", models.BinaryField(max_length=16)),
                ("log_dir_id", models.BinaryField(max_length=16)),
                ("host", models.CharField(max_length=255)),
                ("port", models.IntegerField()),
                ("inspection_port", models.IntegerField(default=0)),
                ("rack", models.CharField(max_length=255, null=True)),
                ("is_fenced", models.BooleanField(default=True)),
                ("agent_id", models.CharField(max_length=36)),
                ("boot_id", models.CharField(default="", max_length=36)),
                ("process", models.CharField(default="", max_length=80)),
                ("registered_at_ms", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="brokers",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "broker_id"), name="one_row_per_broker"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Agent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("agent_id", models.CharField(max_length=36)),
                ("epoch", models.BigIntegerField(default=0)),
                ("host", models.CharField(max_length=255)),
                ("boot_id", models.CharField(max_length=36)),
                ("started_at_ms", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agents",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "agent_id"), name="one_row_per_agent"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DeletedTopic",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("topic_id", models.BinaryField(max_length=16)),
                ("name", models.CharField(max_length=249)),
                ("version", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deleted_topics",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "topic_id"), name="a_topic_dies_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Proposal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("proposal_id", models.BinaryField(max_length=16)),
                ("outcome", models.BinaryField()),
                ("version", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="proposals",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["cluster", "version"], name="proposals_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "proposal_id"), name="a_proposal_is_done_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ResourceConfig",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("resource_type", models.SmallIntegerField()),
                ("name", models.CharField(blank=True, max_length=249)),
                ("configs", models.JSONField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="configs",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "resource_type", "name"), name="one_row_per_resource"
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="topic",
            constraint=models.UniqueConstraint(
                fields=("cluster", "topic_id"), name="one_row_per_topic_id"
            ),
        ),
        migrations.AddConstraint(
            model_name="topic",
            constraint=models.UniqueConstraint(
                fields=("cluster", "collision_key"), name="one_topic_per_name_and_its_likes"
            ),
        ),
        migrations.AddConstraint(
            model_name="partition",
            constraint=models.UniqueConstraint(
                fields=("topic", "index"), name="one_row_per_partition"
            ),
        ),
    ]
