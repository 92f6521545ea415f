"""Defines the tables of the control plane: fields and constraints, without decisions.

Read through `selectors`, written through `services` only. Times are milliseconds since 1970, as
everywhere in Samsa. Rows hold the same values as `brokers.cluster.image`, so that brokers and pages
always get the same.
"""

from typing import ClassVar

from django.db import models

# Bounds of names that come from outside, each Kafka's or the system's own.
CLUSTER_ID_CHARS = 22  # 16 bytes in base64
TOPIC_NAME_CHARS = 249
HOST_CHARS = 255
RACK_CHARS = 255
UUID_CHARS = 36
PROCESS_CHARS = 80
BYTES_16 = 16
BYTES_32 = 32
PURPOSE_CHARS = 20
KIND_CHARS = 24
DIGEST_CHARS = 64  # SHA-256 in hexadecimal digits
ADDRESS_CHARS = 45  # an IPv6 address with an IPv4 address in it
MESSAGE_CHARS = 1000
VERB_CHARS = 12
CURSOR_CHARS = 64


class Cluster(models.Model):
    """One cluster; a console may show several. Its row is the last that any writer locks."""

    cluster_id = models.CharField(max_length=CLUSTER_ID_CHARS, unique=True)
    name = models.CharField(max_length=TOPIC_NAME_CHARS, unique=True)
    # The position of the newest change: its number, and a random id that distinguishes this store
    # from another one, or from its own past after a backup was restored.
    version = models.BigIntegerField(default=0)
    change_id = models.BinaryField(max_length=BYTES_16)
    # Partitions in all, so that no check has to count them.
    partition_count = models.BigIntegerField(default=0)
    created_at_ms = models.BigIntegerField()
    # Which kinds of records may be written: cluster.levels.
    metadata_level = models.SmallIntegerField(default=1, db_default=1)
    # The end of the audit's chain: number and digest of the newest entry, and the oldest one kept.
    audit_number = models.BigIntegerField(default=0, db_default=0)
    audit_digest = models.CharField(max_length=DIGEST_CHARS, default="", db_default="", blank=True)
    audit_first = models.BigIntegerField(default=1, db_default=1)

    def __str__(self) -> str:
        return self.name


class ClusterSecret(models.Model):
    """The secret for the cluster's keys of one purpose; the newest two are valid.

    Read by `cluster_secrets` only, and never shown in a page, a log or a change.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="secrets")
    purpose = models.CharField(max_length=PURPOSE_CHARS)  # security.cluster_keys.Purpose
    key_id = models.IntegerField()  # from 1 on, one more with every rotation
    value = models.BinaryField(max_length=BYTES_32)
    created_at_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "purpose", "key_id"], name="one_secret_per_key"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.key_id}"


class Agent(models.Model):
    """One host's agent, as it started last."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="agents")
    agent_id = models.CharField(max_length=UUID_CHARS)
    epoch = models.BigIntegerField(default=0)
    host = models.CharField(max_length=HOST_CHARS)
    boot_id = models.CharField(max_length=UUID_CHARS)
    started_at_ms = models.BigIntegerField()
    # The highest that it knows.
    metadata_level = models.SmallIntegerField(default=1, db_default=1)
    # Equals the epoch if the agent that started last takes orders; one that does not know
    # orders leaves the older value.
    orders_epoch = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "agent_id"], name="one_row_per_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.host} ({self.agent_id})"


class Broker(models.Model):
    """One broker as it registered last."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="brokers")
    broker_id = models.IntegerField()
    # The version of the change that registered this incarnation; grows with every registration.
    epoch = models.BigIntegerField()
    incarnation = models.BinaryField(max_length=BYTES_16)
    log_dir_id = models.BinaryField(max_length=BYTES_16)
    host = models.CharField(max_length=HOST_CHARS)
    port = models.IntegerField()
    inspection_port = models.IntegerField(default=0)
    rack = models.CharField(max_length=RACK_CHARS, null=True)  # noqa: DJ001 - none is not empty
    is_fenced = models.BooleanField(default=True)
    agent_id = models.CharField(max_length=UUID_CHARS)
    boot_id = models.CharField(max_length=UUID_CHARS, default="")
    # The process as its agent knows it: kernel's boot, pid, start; empty if it is not visible.
    process = models.CharField(max_length=PROCESS_CHARS, default="")
    registered_at_ms = models.BigIntegerField()
    metadata_level = models.SmallIntegerField(default=1, db_default=1)
    # The version that last changed the row; 0: none since rows have it.
    version = models.BigIntegerField(default=0, db_default=0)
    # The user who stopped it, as its host's agent reports; empty if it was not stopped.
    held_by = models.CharField(max_length=TOPIC_NAME_CHARS, default="", db_default="", blank=True)
    held_at_ms = models.BigIntegerField(default=0, db_default=0)
    # How it ended last without an order, as its host's agent reports; empty if it did not.
    ended_how = models.CharField(max_length=TOPIC_NAME_CHARS, default="", db_default="", blank=True)
    ended_at_ms = models.BigIntegerField(default=0, db_default=0)
    ended_times = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "broker_id"], name="one_row_per_broker"),
        ]

    def __str__(self) -> str:
        return f"broker {self.broker_id} at {self.host}:{self.port}"


class Topic(models.Model):
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="topics")
    topic_id = models.BinaryField(max_length=BYTES_16)
    name = models.CharField(max_length=TOPIC_NAME_CHARS)
    # The name with dots replaced by underscores: two topics with the same one would have the same
    # metrics, which Kafka refuses.
    collision_key = models.CharField(max_length=TOPIC_NAME_CHARS)
    # The version that last touched the topic, its configuration apart.
    version = models.BigIntegerField()
    created_at_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "topic_id"], name="one_row_per_topic_id"),
            models.UniqueConstraint(
                fields=["cluster", "collision_key"], name="one_topic_per_name_and_its_likes"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Partition(models.Model):
    topic = models.ForeignKey(Topic, on_delete=models.CASCADE, related_name="partitions")
    index = models.IntegerField()
    replicas = models.JSONField()  # broker ids, the preferred leader first
    isr = models.JSONField()
    leader = models.IntegerField()
    leader_epoch = models.IntegerField(default=0)
    partition_epoch = models.IntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["topic", "index"], name="one_row_per_partition"),
        ]

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


class ResourceConfig(models.Model):
    """The configs that are set for one topic, one broker, or (with an empty name) all brokers."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="configs")
    resource_type = models.SmallIntegerField()  # cluster.image.ResourceType
    name = models.CharField(max_length=TOPIC_NAME_CHARS, blank=True)
    configs = models.JSONField()  # key → value
    # The version that last changed the row; 0: none since rows have it.
    version = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "resource_type", "name"], name="one_row_per_resource"
            ),
        ]

    def __str__(self) -> str:
        return f"configs of {self.resource_type}:{self.name}"


class DeletedTopic(models.Model):
    """A deleted topic: the only permission for brokers to remove its partitions' folders."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="deleted_topics")
    topic_id = models.BinaryField(max_length=BYTES_16)
    name = models.CharField(max_length=TOPIC_NAME_CHARS)
    version = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "topic_id"], name="a_topic_dies_once"),
        ]

    def __str__(self) -> str:
        return self.name


class ProducerIds(models.Model):
    """The counter of producer ids; a block is never issued twice."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="producer_ids")
    next_id = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"from {self.next_id} on"


class Change(models.Model):
    """One transaction that changed the cluster; the newest ones are kept."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="changes")
    version = models.BigIntegerField()
    change_id = models.BinaryField(max_length=BYTES_16)
    # The change as every broker gets it, encoded once.
    encoded = models.BinaryField()
    summary = models.CharField(max_length=TOPIC_NAME_CHARS)  # a few words for people
    actor = models.CharField(max_length=TOPIC_NAME_CHARS)
    made_at_ms = models.BigIntegerField()
    # services.transactions.ChangeKind; empty if an older agent wrote it.
    kind = models.CharField(max_length=KIND_CHARS, default="", db_default="", blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "version"], name="one_change_per_version"),
        ]

    def __str__(self) -> str:
        return f"{self.version}: {self.summary}"


class Proposal(models.Model):
    """The outcome of an accepted proposal, so that its repetition gets the same answer."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="proposals")
    proposal_id = models.BinaryField(max_length=BYTES_16)
    outcome = models.BinaryField()
    version = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "proposal_id"], name="a_proposal_is_done_once"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["cluster", "version"], name="proposals_by_age")]

    def __str__(self) -> str:
        return bytes(self.proposal_id).hex()


class AuditEntry(models.Model):
    """One requested change, made or refused; a link of the cluster's chain.

    Written by `services.audit`, and never changed except for the number of its repetitions.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="audit")
    number = models.BigIntegerField()  # from 1 on, without gaps
    made_at_ms = models.BigIntegerField()
    actor = models.CharField(max_length=TOPIC_NAME_CHARS)
    via = models.CharField(max_length=KIND_CHARS)  # cluster.origins.Via
    client_id = models.CharField(max_length=TOPIC_NAME_CHARS, blank=True)
    address = models.CharField(max_length=ADDRESS_CHARS, blank=True)
    session = models.CharField(max_length=DIGEST_CHARS, blank=True)  # a digest, never the key
    kind = models.CharField(max_length=KIND_CHARS)  # cluster.effects.EffectKind
    subject = models.CharField(max_length=KIND_CHARS)  # cluster.proposals.Subject, in words
    name = models.CharField(max_length=TOPIC_NAME_CHARS, blank=True)
    outcome = models.CharField(max_length=KIND_CHARS * 3)  # "NONE", or the name of the error
    message = models.CharField(max_length=MESSAGE_CHARS, blank=True)
    before = models.JSONField()  # text → text
    after = models.JSONField()
    version = models.BigIntegerField()  # of the change; of the store if it was refused
    previous = models.CharField(max_length=DIGEST_CHARS, blank=True)
    digest = models.CharField(max_length=DIGEST_CHARS)
    # How often it was requested or made, and when last. The digest does not cover these.
    times = models.BigIntegerField(default=1, db_default=1)
    last_at_ms = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "number"], name="one_audit_entry_per_number")
        ]
        indexes: ClassVar = [
            models.Index(fields=["cluster", "name", "number"], name="audit_by_name"),
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.kind} {self.name}"


class BrokerOrder(models.Model):
    """An order for a broker, taken by the agent of its host. The newest ones are kept."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="orders")
    broker_id = models.IntegerField()
    broker_epoch = models.BigIntegerField()
    agent_id = models.CharField(max_length=UUID_CHARS)
    verb = models.CharField(max_length=VERB_CHARS)  # orders.Verb
    cursor = models.CharField(max_length=CURSOR_CHARS, blank=True)  # of a log
    actor = models.CharField(max_length=TOPIC_NAME_CHARS)
    asked_at_ms = models.BigIntegerField()
    deadline_ms = models.BigIntegerField()
    state = models.CharField(max_length=VERB_CHARS)  # orders.OrderState
    taken_at_ms = models.BigIntegerField(default=0, db_default=0)
    ended_at_ms = models.BigIntegerField(default=0, db_default=0)
    message = models.CharField(max_length=MESSAGE_CHARS, default="", db_default="", blank=True)
    # JSON: the lines of a log.
    answer = models.TextField(default="", db_default="", blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["agent_id", "state"], name="orders_by_agent"),
            models.Index(fields=["cluster", "broker_id"], name="orders_by_broker"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} broker {self.broker_id}"
