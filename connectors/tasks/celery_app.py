"""Configures Celery for connectors: messages are hints, and each worker has one child.

A message names a task and a ticket, and the row decides whether the task runs. So messages are
acknowledged early and stored nowhere else; a lost message costs the seconds until the planner
notices.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from logging import Logger
from typing import Any, Final

from celery import Celery  # type: ignore[import-untyped]
from django.conf import settings

from connectors.runtime.pools import PLAIN, pool_of

RUN: Final = "connect.run_slice"
PREPARE: Final = "connect.prepare"
REDRIVE: Final = "connect.redrive"
# The queue of a worker.
QUEUE: Final = "connect.{}"
# The limit of a child's memory at the end of a slice, in kilobytes; then it is replaced.
MAX_CHILD_KBYTES: Final = 768 * 1024
# How long a child may take to start: it imports plugins, and the machine may be busy.
BEGIN_S: Final = 60.0
CONNECT_S: Final = 3.0
# An older message is dropped; its ticket is out of date.
EXPIRES_S: Final = 600


def broker_url(url: str) -> str:
    """Return REDIS_URL in the form of Celery's transport."""
    return url.replace("unix://", "redis+socket://", 1) if url.startswith("unix://") else url


def make(cluster: str, pool: str = PLAIN) -> Celery:
    """Return the application of one cluster, with keys in Valkey of its own."""
    # Without Celery's part for Django, which imports every page of the console to check it.
    app = Celery("samsa", set_as_current=False, fixups=())
    app.conf.update(
        broker_url=broker_url(settings.REDIS_URL),
        broker_connection_timeout=CONNECT_S,
        broker_connection_retry_on_startup=True,
        # Retry forever, and soon: Valkey is restarted within a second.
        broker_connection_max_retries=None,
        broker_transport_options={
            "global_keyprefix": f"samsa-connect:{cluster}:",
            "socket_connect_timeout": CONNECT_S,
            "socket_timeout": CONNECT_S * 2,
        },
        broker_heartbeat=0,
        result_backend=None,
        task_ignore_result=True,
        task_acks_late=False,
        # A slice that runs longer hangs, so its process is killed.
        task_time_limit=pool_of(pool).hard_limit_s,
        task_serializer="json",
        accept_content=["json"],
        worker_pool="prefork",
        worker_concurrency=1,
        worker_prefetch_multiplier=1,
        worker_max_memory_per_child=MAX_CHILD_KBYTES,
        worker_proc_alive_timeout=BEGIN_S,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        # Celery would treat their messages as lost; ours are not lost but late.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        enable_utc=True,
        timezone="UTC",
    )
    return app


@contextmanager
def logging_unsent(log: Logger, event: str) -> Iterator[None]:
    """Log that messages were not sent; their planner or beat notices it, and sends them again."""
    try:
        yield
    # Any error of kombu or of the transport: Valkey is down.
    except Exception as error:  # noqa: BLE001
        log.warning("%s reason=%r", event, str(error))


def send_run(app: Celery, worker: str, task: int, ticket: datetime) -> None:
    """Send a slice to a worker's queue; raises kombu's exceptions if Valkey is down."""
    _send(app, RUN, worker, task=task, ticket=ticket.isoformat())


def send_prepare(app: Celery, worker: str, connector: int, generation: int) -> None:
    _send(app, PREPARE, worker, connector=connector, generation=generation)


def send_redrive(app: Celery, worker: str, run: int, ticket: datetime) -> None:
    _send(app, REDRIVE, worker, run=run, ticket=ticket.isoformat())


def purge(app: Celery, worker: str) -> None:
    """Empty the queue of a worker."""
    with app.connection_for_write() as connection:
        connection.default_channel.queue_purge(QUEUE.format(worker))


def _send(app: Celery, name: str, worker: str, **told: Any) -> None:
    app.send_task(
        name,
        kwargs=told,
        queue=QUEUE.format(worker),
        expires=EXPIRES_S,
        ignore_result=True,
        retry=False,
    )
