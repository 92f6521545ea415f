"""Defines the tables of connectors: fields and constraints, without logic.

Read through `selectors`, written through `services` and `connectors.tasks` only. Times are the
database's own, since several hosts compare leases.
"""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

CLUSTER_ID_CHARS = 22  # 16 bytes in base64
NAME_CHARS = 249  # as of a topic, which a connector's name becomes a part of
STATE_CHARS = 12
WORKER_CHARS = 255
DIGEST_CHARS = 64  # SHA-256 in hexadecimal digits
CLASS_CHARS = 255
VERSION_CHARS = 40
SUMMARY_CHARS = 1000
# Our own words, such as "connector.reset_offsets".
EVENT_CHARS = 40
ACTOR_CHARS = 200  # a principal
ADDRESS_CHARS = 64


class Target(models.TextChoices):
    """The wanted state of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class State(models.TextChoices):
    """The actual state of a connector, or of a task."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"  # of a connector only


class Connector(models.Model):
    """A connector of a cluster. `config` is as the author wrote it, with PASSWORD values sealed."""

    cluster = models.CharField(max_length=CLUSTER_ID_CHARS)
    name = models.CharField(max_length=NAME_CHARS)
    plugin = models.CharField(max_length=CLASS_CHARS)
    version = models.CharField(max_length=VERSION_CHARS, db_default="")
    kind = models.CharField(max_length=STATE_CHARS)  # source, sink
    # The pool of workers that runs its tasks: runtime.pools.
    pool = models.CharField(max_length=STATE_CHARS, default="", db_default="")
    config = models.JSONField()
    target = models.CharField(max_length=STATE_CHARS, choices=Target.choices)
    state = models.CharField(max_length=STATE_CHARS, choices=State.choices)
    # Rises with every change of the config, and every restart: tasks of older ones end.
    generation = models.BigIntegerField(db_default=1)
    # The generation of the existing tasks; the planner creates those of a newer one.
    planned_generation = models.BigIntegerField(db_default=0)
    # The worker that creates, or has created, its tasks; and the time of the request.
    worker = models.CharField(max_length=WORKER_CHARS, db_default="")
    planning_since = models.DateTimeField(null=True)
    # Start of the running preparation; processes that ended during one, in a row; and the time
    # before which it is not tried again.
    preparing_at = models.DateTimeField(null=True)
    crashes = models.IntegerField(db_default=0)
    due_at = models.DateTimeField(null=True)
    trace = models.TextField(db_default="")
    # The rights it needs, with their authors: connectors.authors. None from an older release.
    claims = models.JSONField(null=True)
    # Topics read or written since the last reset.
    topics = models.JSONField(default=list)
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "name"], name="one_connector_per_name"),
        ]

    def __str__(self) -> str:
        return self.name


class Task(models.Model):
    """A share of a connector's work, and its owner."""

    connector = models.ForeignKey(Connector, on_delete=models.CASCADE, related_name="tasks")
    number = models.IntegerField()
    generation = models.BigIntegerField()
    config = models.JSONField(default=dict)  # beside the connector's own
    state = models.CharField(max_length=STATE_CHARS, choices=State.choices)
    # The owner, the end of its lease, and the number of changes of owner, which fences writes.
    worker = models.CharField(max_length=WORKER_CHARS, db_default="")
    # The worker that the planner has chosen; it stays while the worker is alive.
    assigned = models.CharField(max_length=WORKER_CHARS, db_default="")
    epoch = models.BigIntegerField(db_default=0)
    leased_until = models.DateTimeField(null=True)
    taken_at = models.DateTimeField(null=True)
    # When it was queued for its worker, which is also the ticket of that message; and the ticket of
    # the last message that the worker took.
    queued_at = models.DateTimeField(null=True)
    served_at = models.DateTimeField(null=True)
    slice_ended_at = models.DateTimeField(null=True)
    # The earliest time to run it: it is idle, or waits for a retry.
    due_at = models.DateTimeField(null=True)
    retries = models.IntegerField(db_default=0)
    idle_slices = models.IntegerField(db_default=0)
    # Consecutive slices in which the worker's process ended, without anything made durable.
    crashes = models.IntegerField(db_default=0)
    # When it was last killed with its process, unless a slice has ended normally since.
    hung_at = models.DateTimeField(null=True)
    restarts = models.IntegerField(db_default=0)
    trace = models.TextField(db_default="")
    # Counts since the task was created, and rates of its last seconds: runtime.figures.
    figures = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["connector", "number"], name="one_task_per_number"),
        ]

    def __str__(self) -> str:
        return f"{self.connector_id}/{self.number}"


class SourceOffset(models.Model):
    """The offset of a place in a source; only the holder of the task's epoch writes it."""

    connector = models.ForeignKey(Connector, on_delete=models.CASCADE, related_name="offsets")
    digest = models.CharField(max_length=DIGEST_CHARS)  # of the place, as canonical JSON
    place = models.JSONField()
    offset = models.JSONField()
    epoch = models.BigIntegerField(db_default=0)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["connector", "digest"], name="one_offset_per_place"),
        ]

    def __str__(self) -> str:
        return f"{self.connector_id} {self.place}"


class LogLine(models.Model):
    """A log line of a task; the newest thousand of each connector are kept."""

    connector = models.ForeignKey(Connector, on_delete=models.CASCADE, related_name="lines")
    task = models.IntegerField(null=True)  # None: the connector itself
    at = models.DateTimeField(db_default=Now())
    level = models.CharField(max_length=STATE_CHARS)
    text = models.CharField(max_length=SUMMARY_CHARS)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["connector", "id"], name="lines_by_connector")]

    def __str__(self) -> str:
        return self.text


class RunState(models.TextChoices):
    """The state of a run that sends dead letters again."""

    RUNNING = "RUNNING"
    DONE = "DONE"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


class Redrive(models.Model):
    """One run that sends dead letters of a connector again: its plan and its progress."""

    connector = models.ForeignKey(Connector, on_delete=models.CASCADE, related_name="redrives")
    # Unique for each plan: starting the same plan twice starts one run.
    plan_id = models.CharField(max_length=DIGEST_CHARS)
    destination = models.CharField(max_length=STATE_CHARS)  # runtime.letters.Destination
    state = models.CharField(
        max_length=STATE_CHARS, choices=RunState.choices, db_default=RunState.RUNNING
    )
    plan = models.JSONField()  # redrive_plans.stored
    # The number of letters to send, according to the plan.
    chosen = models.BigIntegerField()
    # The next offset by partition, and the end of the retry topic at that time.
    positions = models.JSONField()
    mark = models.JSONField(default=dict)
    is_in_doubt = models.BooleanField(db_default=False)
    looked = models.BigIntegerField(db_default=0)
    sent = models.BigIntegerField(db_default=0)
    sent_bytes = models.BigIntegerField(db_default=0)
    unsent = models.JSONField(default=dict)  # name of the reason → count
    reason = models.TextField(db_default="")
    actor = models.CharField(max_length=ACTOR_CHARS)
    # The worker that holds the lease, its end, and the fencing epoch, as for a task.
    worker = models.CharField(max_length=WORKER_CHARS, db_default="")
    epoch = models.BigIntegerField(db_default=0)
    leased_until = models.DateTimeField(null=True)
    # The ticket of its message, and when the message was last sent.
    queued_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    # Consecutive slices that did not end normally, or found that the cluster did not answer.
    failures = models.IntegerField(db_default=0)
    began_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["connector", "plan_id"], name="one_redrive_per_plan"),
            models.UniqueConstraint(
                fields=["connector"],
                condition=models.Q(state="RUNNING"),
                name="one_running_redrive_per_connector",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.connector_id} {self.pk} {self.state}"


class Worker(models.Model):
    """A registered worker, and the time of its last report."""

    cluster = models.CharField(max_length=CLUSTER_ID_CHARS, db_default="")
    name = models.CharField(max_length=WORKER_CHARS, unique=True)
    pool = models.CharField(max_length=STATE_CHARS, default="", db_default="")
    host = models.CharField(max_length=WORKER_CHARS)
    boot_id = models.CharField(max_length=DIGEST_CHARS, db_default="")
    process_id = models.BigIntegerField()
    # The start of the process, in ticks since boot: process ids are reused.
    process_began = models.BigIntegerField(db_default=0)
    targets = models.TextField(default="", db_default="")  # its SAMSA_CONNECT_TARGETS
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class WorkerReport(models.Model):
    """The last report of a worker on its engine; it outlives the worker."""

    cluster = models.CharField(max_length=CLUSTER_ID_CHARS)
    name = models.CharField(max_length=WORKER_CHARS, unique=True)
    pool = models.CharField(max_length=STATE_CHARS)
    host = models.CharField(max_length=WORKER_CHARS)
    told = models.JSONField()  # as its pool's plugin has it, without a secret
    told_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class UntoldChange(models.Model):
    """A change that is not in the audit log of its cluster yet; see `changes`."""

    cluster = models.CharField(max_length=CLUSTER_ID_CHARS)
    event = models.CharField(max_length=EVENT_CHARS)
    actor = models.CharField(max_length=ACTOR_CHARS)
    address = models.CharField(max_length=ADDRESS_CHARS, default="", db_default="")
    # How they authenticated: gateway.access.callers.CallerKind; empty from an older release.
    caller = models.CharField(max_length=STATE_CHARS, default="", db_default="")
    subject = models.CharField(max_length=NAME_CHARS)
    before = models.JSONField()  # text → text
    after = models.JSONField()  # text → text
    made_at_ms = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.event} {self.subject}"


class Beat(models.Model):
    """The process that plans for a cluster, and the end of its lease."""

    cluster = models.CharField(max_length=CLUSTER_ID_CHARS, unique=True)
    holder = models.CharField(max_length=WORKER_CHARS)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return self.holder
