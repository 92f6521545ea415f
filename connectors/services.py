"""Changes connectors: each function checks the right, changes rows, and records the change.

Nothing runs here: the planner and the workers act on the rows. A restart and a change of a config
raise the generation, at which tasks of an older one end.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from connectors import authors, models, needed_rights, registry, secret_rights, selectors, wanted
from connectors import framework_keys as keys
from connectors.changes import By, Event, difference, tell
from connectors.database import CONNECT
from connectors.models import State, Target
from connectors.places import MAX_PLACE_CHARS, digest_of, spelled
from connectors.refusals import Conflict, Invalid, NotFound, Refused, Unfit
from connectors.runtime.group_names import group_of
from connectors.runtime.retry_topic import name_for
from connectors.sdk.connector import Connector, SinkConnector, SourceConnector
from connectors.sdk.errors import ConfigError, ConnectorError
from connectors.sdk.records import Place, TopicPartition
from connectors.validation import MAX_KEYS
from connectors.vault import Stored, is_sealed, masked, shown_as
from gateway.access import audit
from gateway.access.audit import Actor
from gateway.access.operations import Kind, Operation
from gateway.kafka.shown_names import shown

# The state of a connector until the planner sees it, by its target.
FIRST_STATE: Final = {
    Target.STARTED: State.UNASSIGNED,
    Target.PAUSED: State.PAUSED,
    Target.STOPPED: State.STOPPED,
}
# Offsets that one call may change: partitions of a few large topics, or tables of a database.
MAX_OFFSETS: Final = 10_000
# The audit entry of a changed password.
ANOTHER: Final = "{}, another one"
# The name under which changes list newly used secrets; config keys have no space.
SECRETS: Final = "secrets used"
STOP_FIRST: Final = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done"
    " for the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop'"
    " endpoint"
)
ALTERED: Final = "The offsets for this connector have been altered successfully"
RESET: Final = "The offsets for this connector have been reset successfully"
# Kafka Connect's message for connectors that keep offsets themselves, which take precedence.
ALTERED_BESIDE: Final = (
    "The Connect framework-managed offsets for this connector have been altered successfully."
    " However, if this connector manages offsets externally, they will need to be manually altered"
    " in the system that the connector uses."
)
RESET_BESIDE: Final = (
    "The Connect framework-managed offsets for this connector have been reset successfully."
    " However, if this connector manages offsets externally, they will need to be manually reset"
    " in the system that the connector uses."
)
Config = Mapping[str, str]
Offsets = Sequence[tuple[Place | None, Place | None]]


class GroupOffsets(Protocol):
    """Offsets of consumer groups, by a client of the cluster."""

    def committed(self, group: str) -> Mapping[TopicPartition, int]: ...

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None: ...

    def delete(self, group: str, places: Sequence[TopicPartition]) -> None: ...


def create(
    by: By, cluster: str, name: str, config: Config, *, target: Target = Target.STARTED
) -> selectors.ConnectorInfo:
    """Create a connector. Raises Refused, Conflict, Invalid, Unfit."""
    _require(by, Operation.CREATE_CONNECTORS, cluster, name)
    config = _named(name, config)
    if not name.isprintable():
        raise Unfit(
            f"the name {shown(name)} has characters that readers do not see, or that turn the text"
            " around them: give a name of printable characters"
        )
    if selectors.find_row(cluster, name) is not None:
        raise Conflict(f"Connector {name} already exists")
    plugin, judged = _judge(by, cluster, config, None)
    row = models.Connector(
        cluster=cluster, name=name, target=target.value, state=FIRST_STATE[target].value
    )
    _write_config(by, row, plugin, judged)
    try:
        with _changing():
            if models.Connector.objects.filter(cluster=cluster).count() >= selectors.MAX_CONNECTORS:
                raise Unfit(
                    f"there are {selectors.MAX_CONNECTORS} connectors, as many as a cluster can"
                    " have: delete one first"
                )
            row.save(force_insert=True)
            after = masked(row.config) | _secrets_named({}, judged.config)
            tell(Event.CREATED, by=by, connector=row, after=after)
    except IntegrityError:
        raise Conflict(f"Connector {name} already exists") from None
    wanted.note(row.pool)
    return selectors.connector(cluster, name)


def put_config(
    by: By, cluster: str, name: str, config: Config
) -> tuple[selectors.ConnectorInfo, bool]:
    """Replace the config of a connector, or create one; return also whether it was created."""
    row = selectors.find_row(cluster, name)
    if row is None:
        return create(by, cluster, name, config), True
    _require(by, Operation.ALTER_CONNECTORS, cluster, name)
    return _replace(by, row, _named(name, config)), False


def edit_config(
    by: By, cluster: str, name: str, config: Config, *, generation: int
) -> selectors.ConnectorInfo:
    """Replace the config of a connector; Conflict if it has changed since `generation`."""
    _require(by, Operation.ALTER_CONNECTORS, cluster, name)
    row = selectors.row_of(cluster, name)
    if row.generation != generation:
        raise _changed_meanwhile(name)
    return _replace(by, row, _named(name, config))


def patch_config(
    by: By, cluster: str, name: str, patch: Mapping[str, str | None]
) -> selectors.ConnectorInfo:
    """Change some keys of a config; None removes a key."""
    _require(by, Operation.ALTER_CONNECTORS, cluster, name)
    row = selectors.row_of(cluster, name)
    merged = {**masked(row.config), **patch}
    config = {key: text for key, text in merged.items() if text is not None}
    return _replace(by, row, _named(name, config))


def delete(by: By, cluster: str, name: str) -> None:
    """Delete a connector with its tasks, its log, and the offsets of a source."""
    _require(by, Operation.DELETE_CONNECTORS, cluster, name)
    with _changing():
        row = _locked(cluster, name)
        tell(Event.DELETED, by=by, connector=row, before=masked(row.config))
        row.delete()


def pause(by: By, cluster: str, name: str) -> None:
    _aim(by, cluster, name, Target.PAUSED, Event.PAUSED)


def resume(by: By, cluster: str, name: str) -> None:
    _aim(by, cluster, name, Target.STARTED, Event.RESUMED)


def stop(by: By, cluster: str, name: str) -> None:
    _aim(by, cluster, name, Target.STOPPED, Event.STOPPED)


def restart(
    by: By, cluster: str, name: str, *, include_tasks: bool = False, only_failed: bool = False
) -> selectors.Status:
    """Restart a connector, and its tasks if included, or only what has failed."""
    _require(by, Operation.OPERATE_CONNECTORS, cluster, name)
    with _changing():
        row = _locked(cluster, name, missing=f"Unknown connector: {name}")
        has_failed = row.state == State.FAILED
        if has_failed or (include_tasks and not only_failed):
            # Creates all tasks again: a failed connector has none.
            _begin_anew(row)
        elif include_tasks:
            _restart_tasks(row.tasks.filter(state=State.FAILED))
        tell(
            Event.RESTARTED,
            by=by,
            connector=row,
            after={"tasks": str(include_tasks), "only failed": str(only_failed)},
        )
    return selectors.status(cluster, name, reader=by.caller.rights)


def restart_task(by: By, cluster: str, name: str, number: int) -> None:
    _require(by, Operation.OPERATE_CONNECTORS, cluster, name)
    with _changing():
        row = _locked(cluster, name, missing=f"Unknown connector: {name}")
        is_there = _restart_tasks(row.tasks.filter(number=number))
        # One that is still to be created starts anyway.
        if not is_there and not selectors.awaits_task(row, number):
            raise NotFound(f"Unknown task: {name}-{number}")
        tell(Event.TASK_RESTARTED, by=by, connector=row, after={"task": str(number)})


def alter_offsets(
    by: By, cluster: str, name: str, offsets: Offsets, *, groups: GroupOffsets
) -> str:
    """Set or, by None, remove offsets; return the caller's message. Unfit unless stopped."""
    _require(by, Operation.ALTER_CONNECTORS, cluster, name)
    row = selectors.row_of(cluster, name)
    if not offsets:
        raise Unfit("Partitions / offsets need to be provided for an alter offsets request")
    if len(offsets) > MAX_OFFSETS:
        raise Unfit(
            f"{len(offsets)} offsets are given; at most {MAX_OFFSETS} fit: send less in one call"
        )
    _require_stopped(row)
    if row.kind == "sink":
        wanted = [_sink_offset(place, offset) for place, offset in offsets]
        _alter_group(groups, group_of(name), wanted, is_job=bool(row.pool))
        _tell_offsets(by, row, Event.OFFSETS_ALTERED, len(wanted))
        _require_still_stopped(row)
    else:
        _alter_source(by, row, offsets)
    return ALTERED_BESIDE if _keeps_offsets(row) else ALTERED


def reset_offsets(by: By, cluster: str, name: str, *, groups: GroupOffsets) -> str:
    """Remove all offsets of a connector; return the caller's message. Unfit unless stopped."""
    _require(by, Operation.ALTER_CONNECTORS, cluster, name)
    row = selectors.row_of(cluster, name)
    _require_stopped(row)
    if row.kind == "sink":
        group = group_of(name)
        # Keep the offsets of the retry topic: its records are read again from their first topic.
        retries = name_for(name)
        places = sorted(place for place in groups.committed(group) if place.topic != retries)
        if places:
            _alter_group(groups, group, [(at, None) for at in places], is_job=bool(row.pool))
        _tell_offsets(by, row, Event.OFFSETS_RESET, len(places))
        _require_still_stopped(row)
    else:
        with _changing():
            locked = _locked(cluster, name)
            _require_stopped(locked)
            count, _ = locked.offsets.all().delete()
            _forget_kept(locked)
            tell(Event.OFFSETS_RESET, by=by, connector=locked, after={"places": str(count)})
    return RESET_BESIDE if _keeps_offsets(row) else RESET


def reset_topics(by: By, cluster: str, name: str) -> None:
    """Forget the topics that a connector has read or written."""
    _require(by, Operation.OPERATE_CONNECTORS, cluster, name)
    with _changing():
        row = _locked(cluster, name)
        if row.topics:
            models.Connector.objects.filter(pk=row.pk).update(topics=[])
            tell(Event.TOPICS_RESET, by=by, connector=row)


def seal_anew() -> int:
    """Seal all passwords with the newest key; return the number of connectors with any."""
    count = 0
    for pk in list(models.Connector.objects.values_list("pk", flat=True)):
        with _changing():
            row = models.Connector.objects.select_for_update().get(pk=pk)
            if any(is_sealed(value) for value in row.config.values()):
                models.Connector.objects.filter(pk=pk).update(config=_sealed_anew(row, row.config))
                count += 1
            for task in row.tasks.all():
                if any(is_sealed(value) for value in task.config.values()):
                    task.config = _sealed_anew(row, task.config)
                    task.save(update_fields=["config"])
    return count


def _sealed_anew(row: models.Connector, stored: Stored) -> Stored:
    vault, place = selectors.vault(), selectors.place_of(row)
    # Seal again what was sealed.
    return vault.seal(vault.open(stored, place), (), place)


def _require(by: By, operation: Operation, cluster: str, name: str) -> None:
    decision = by.caller.decide(operation, Kind.CONNECTOR, cluster, name)
    if not decision.is_allowed:
        raise Refused(decision.reason)


@contextmanager
def _changing() -> Iterator[None]:
    with transaction.atomic(using=CONNECT):
        yield


def _locked(cluster: str, name: str, *, missing: str = "") -> models.Connector:
    rows = models.Connector.objects.select_for_update()
    row = rows.filter(cluster=cluster, name=name).first()
    if row is None:
        raise NotFound(missing or f"Connector {name} not found")
    return row


def _named(name: str, config: Config) -> dict[str, str]:
    """Return a config that includes the connector's name; Unfit if it has another name."""
    if not 0 < len(name) <= models.NAME_CHARS:
        raise Unfit(
            f"a name of a connector has 1 to {models.NAME_CHARS} characters, this one {len(name)}:"
            " give another one"
        )
    if len(config) > MAX_KEYS:
        raise Unfit(f"the config has {len(config)} keys, at most {MAX_KEYS} are allowed")
    if any("\0" in text for pair in config.items() for text in pair):
        raise Unfit("no key or value holds a NUL: take it out of the config")
    written = config.get(keys.NAME, name)
    if written != name:
        raise Unfit(
            f"Connector name configuration ({written}) doesn't match connector name in the URL"
            f" ({name})"
        )
    return {**config, keys.NAME: name}


def _judge(
    by: By, cluster: str, config: Config, row: models.Connector | None
) -> tuple[type[Connector], selectors.Judged]:
    plugin = selectors.plugin_of(selectors.class_in(config))
    lacking = needed_rights.missing_right(by.caller, cluster, plugin, config)
    if lacking is not None:
        raise Refused(lacking)
    judged = selectors.judged(by.caller, cluster, plugin, config, row, is_deep=True)
    if judged.beyond_rights:
        audit.record(
            "connector.secret_refused",
            actor=Actor(name=by.caller.principal, address=by.address),
            subject=config[keys.NAME],
            keys=",".join(judged.beyond_rights),
        )
    if not judged.validation.is_valid:
        raise Invalid(judged.validation)
    return plugin, judged


def _write_config(
    by: By, row: models.Connector, plugin: type[Connector], judged: selectors.Judged
) -> None:
    row.plugin, row.version = plugin.name, plugin.version[: models.VERSION_CHARS]
    row.kind, row.pool = registry.kind_of(plugin), plugin.pool
    said = judged.validation
    row.claims = authors.claims(by.caller, row.cluster, plugin, judged.config, row.claims)
    row.config = selectors.vault().seal(
        judged.config, said.secret_keys, selectors.place_of(row), partly=said.partly
    )


def _replace(by: By, row: models.Connector, config: Config) -> selectors.ConnectorInfo:
    # Before locking the row: a deep validation may take seconds.
    plugin, judged = _judge(by, row.cluster, config, row)
    with _changing():
        locked = _locked(row.cluster, row.name)
        if locked.generation != row.generation:
            raise _changed_meanwhile(row.name)
        before, clear = masked(locked.config), selectors.opened(locked)
        _write_config(by, locked, plugin, judged)
        locked.save(update_fields=["plugin", "version", "kind", "pool", "config", "claims"])
        _begin_anew(locked)
        was, is_now = difference(before, masked(locked.config))
        is_now = _other_passwords(locked.config, clear, judged.config) | is_now
        is_now |= _secrets_named(clear, judged.config)
        tell(Event.ALTERED, by=by, connector=locked, before=was, after=is_now)
    wanted.note(plugin.pool)
    return selectors.connector(row.cluster, row.name)


def _changed_meanwhile(name: str) -> Conflict:
    return Conflict(
        f"Connector {name} was changed by another user meanwhile, or restarted: look at its "
        "config and try again"
    )


def _other_passwords(stored: Stored, before: Config, after: Config) -> dict[str, str]:
    """Return the audit entries of changed passwords."""
    return {
        key: ANOTHER.format(shown_as(value))
        for key, value in stored.items()
        if is_sealed(value) and key in before and before[key] != after[key]
    }


def _secrets_named(before: Config, after: Config) -> dict[str, str]:
    """Return an entry for the secrets that a config newly refers to."""
    former = secret_rights.names_in(before)
    names = [name for name in secret_rights.names_in(after) if name not in former]
    return {SECRETS: ", ".join(names)} if names else {}


def _begin_anew(row: models.Connector) -> None:
    """Have the planner create tasks again; the present ones end when they notice."""
    state = FIRST_STATE[Target(row.target)]
    if row.target == Target.STARTED and row.tasks.exists():
        state = State.RESTARTING
        row.tasks.update(state=State.RESTARTING)
    models.Connector.objects.filter(pk=row.pk).update(
        generation=F("generation") + 1,
        state=state,
        trace="",
        crashes=0,
        due_at=None,
        changed_at=Now(),
    )


def _restart_tasks(tasks: Any) -> int:
    """Revoke leases, so that the planner assigns the tasks again; return their number."""
    count: int = tasks.update(
        state=State.RESTARTING,
        trace="",
        retries=0,
        idle_slices=0,
        crashes=0,
        hung_at=None,
        restarts=F("restarts") + 1,
        epoch=F("epoch") + 1,
        worker="",
        leased_until=None,
        queued_at=None,
        due_at=None,
    )
    return count


def _aim(by: By, cluster: str, name: str, target: Target, event: Event) -> None:
    _require(by, Operation.OPERATE_CONNECTORS, cluster, name)
    with _changing():
        row = _locked(cluster, name, missing=f"Unknown connector {name}")
        if row.target == target:
            return
        models.Connector.objects.filter(pk=row.pk).update(target=target, changed_at=Now())
        tell(event, by=by, connector=row, before={"target": row.target}, after={"target": target})


def _require_stopped(row: models.Connector) -> None:
    is_running = row.tasks.filter(leased_until__gt=Now()).exists()
    if row.target != Target.STOPPED:
        raise Unfit(STOP_FIRST.format(name=row.name))
    if is_running:
        raise Conflict(f"Tasks of connector {row.name} are still ending: try again in a second")


def _require_still_stopped(row: models.Connector) -> None:
    """Raise Conflict if a sink was resumed while the cluster changed its group's offsets.

    No lock of a row is held while brokers are asked.
    """
    if selectors.row_of(row.cluster, row.name).target != Target.STOPPED:
        raise Conflict(
            f"Connector {row.name} was resumed while its offsets were changed, so its tasks may"
            " have replaced them: stop it, and change them again"
        )


def _forget_kept(row: models.Connector) -> None:
    """Make tasks discard resources kept in a worker's memory, which belong to former offsets.

    A connector that is resumed before the planner runs still has its former tasks.
    """
    models.Connector.objects.filter(pk=row.pk).update(generation=F("generation") + 1)


def _keeps_offsets(row: models.Connector) -> bool:
    """Return whether the target keeps the offsets of a connector, and takes precedence."""
    plugin = registry.find(row.plugin)
    return plugin is not None and issubclass(plugin, SinkConnector) and plugin.keeps_offsets


def _alter_source(by: By, row: models.Connector, offsets: Offsets) -> None:
    wanted = {_spelled(place): (place, offset) for place, offset in offsets}
    plugin = registry.find(row.plugin)
    if plugin is not None and not registry.is_foreign(plugin):
        _ask_plugin(by, plugin, row, {text: offset for text, (_, offset) in wanted.items()})
    with _changing():
        locked = _locked(row.cluster, row.name)
        _require_stopped(locked)
        for place, offset in wanted.values():
            assert place is not None, "spelled above"
            digest = digest_of(place)
            if offset is None:
                locked.offsets.filter(digest=digest).delete()
            else:
                locked.offsets.update_or_create(
                    digest=digest,
                    defaults={"place": dict(place), "offset": dict(offset), "changed_at": Now()},
                )
        _forget_kept(locked)
        after = {text[:200]: spelled(to) if to else "none" for text, (_, to) in wanted.items()}
        tell(Event.OFFSETS_ALTERED, by=by, connector=locked, after=dict(list(after.items())[:50]))


def _spelled(place: Place | None) -> str:
    if place is None:
        raise Unfit("The partition of a source's offset cannot be null or missing: give an object")
    text = spelled(place)
    if len(text) > MAX_PLACE_CHARS:
        raise Unfit(f"a partition has {len(text)} characters; at most {MAX_PLACE_CHARS} fit")
    return text


def _ask_plugin(
    by: By, plugin: type[Connector], row: models.Connector, offsets: Mapping[str, Place | None]
) -> None:
    judged = selectors.judged(
        by.caller, row.cluster, plugin, masked(row.config), None, is_deep=False
    )
    parsed = judged.validation.parsed
    try:
        if issubclass(plugin, SourceConnector):
            plugin().alter_offsets(parsed, offsets)
    except ConfigError as error:
        raise Unfit(str(error)) from None
    except ConnectorError as error:
        raise Unfit(f"{plugin.name} does not take these offsets: {error}") from None


def _sink_offset(place: Place | None, offset: Place | None) -> tuple[TopicPartition, int | None]:
    """Return the partition and offset of an entry; errors are those of Kafka Connect."""
    if place is None:
        raise Unfit("The partition for a sink connector offset cannot be null or missing")
    if not {"kafka_topic", "kafka_partition"} <= place.keys():
        raise Unfit(
            "The partition for a sink connector offset must contain the keys 'kafka_topic' and"
            " 'kafka_partition'"
        )
    number = _whole(place["kafka_partition"])
    if not isinstance(place["kafka_topic"], str) or number is None:
        raise Unfit(
            "Failed to parse the following Kafka partition value in the provided offsets:"
            f" '{place['kafka_partition']}'. Partition values for sink connectors need to be"
            " integers."
        )
    where = TopicPartition(topic=place["kafka_topic"], partition=number)
    if offset is None:
        return where, None
    if "kafka_offset" not in offset:
        raise Unfit(
            "The offset for a sink connector should either be null or contain the key"
            " 'kafka_offset'"
        )
    wanted = _whole(offset["kafka_offset"])
    if wanted is None:
        raise Unfit(
            "Failed to parse the following Kafka offset value in the provided offsets:"
            f" '{offset['kafka_offset']}'. Offset values for sink connectors need to be integers."
        )
    return where, wanted


def _whole(value: object) -> int | None:
    """Parse a number, perhaps a text; None if it is invalid or negative."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value)
    return int(text) if len(text) <= 19 and text.isascii() and text.isdigit() else None


def _alter_group(
    groups: GroupOffsets,
    group: str,
    wanted: Sequence[tuple[TopicPartition, int | None]],
    *,
    is_job: bool,
) -> None:
    if is_job:
        # A job stores its own offsets, and continues there if its group has lost them.
        wanted = [(where, offset or 0) for where, offset in wanted]
    to_set = {where: offset for where, offset in wanted if offset is not None}
    to_drop = [where for where, offset in wanted if offset is None]
    if to_set:
        groups.commit(group, to_set)
    if to_drop:
        groups.delete(group, to_drop)


def _tell_offsets(by: By, row: models.Connector, event: Event, count: int) -> None:
    with _changing():
        _forget_kept(row)
        tell(event, by=by, connector=row, after={"partitions": str(count)})
