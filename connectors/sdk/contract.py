"""Checks the rules of every connector, for the tests of its author; each check is an assertion.

`definition_is_sound`, `tasks_are_told_what_is_defined` and `secrets_stay_hidden` hold for all,
`source_resumes` for those whose records have an end, `sink_repeats_nothing` for those that claim
exactly once.
"""

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from connectors.sdk import checks
from connectors.sdk.configs import Key, Kind, Secret
from connectors.sdk.connector import Config, Connector, SinkConnector, SourceConnector
from connectors.sdk.home_files import DELTA_LOG
from connectors.sdk.records import SinkRecord, SourceRecord
from connectors.sdk.testing import (
    MemorySinkContext,
    MemorySourceContext,
    not_before,
    open_sink,
    parse_config,
    run_sink,
    run_source,
    sink_record,
)

# The secret in these checks: no other text contains it.
SECRET: Final = "s3cret-of-the-contract"  # noqa: S105 - made to be looked for
# If there are more places at which a slice may begin, only this many are checked.
MAX_CUTS: Final = 12
# Values of a path below the home's files: the second is refused by `home_files` alone.
TAKEN_PATH, REFUSED_PATH = "folder/file", f"folder/{DELTA_LOG}"


def definition_is_sound(connector: type[Connector]) -> None:
    """Check that keys have texts, defaults pass their own checks, and no secret is a default.

    And that keys whose values are paths of the home's files are marked, so that authors of configs
    need a right on these.
    """
    assert connector.name, f"{connector.__name__} has a name"
    assert connector.title, f"{connector.name} has a title"
    assert connector.summary, f"{connector.name} has a summary"
    definition = connector.definition()
    assert list(definition.by_name) == list(connector.definition().by_name), "keys stay the same"
    for key in definition:
        assert key.doc, f"{key.name} has words for the form"
        assert key.files is not None or not _takes_paths(key), f"{key.name}: mark it with `files`"
        if key.is_required:
            continue
        value = checks.parse(key, key.default)
        given = list(key.default) if isinstance(key.default, tuple) else key.default
        assert given == value, f"{key.name}: its default is a value, not a text of one"
        assert value is None or checks.check(key, value) is None, f"{key.name}: its default passes"
        assert key.kind is not Kind.PASSWORD or not value, f"{key.name}: no secret is a default"
    both = set(connector.refused) & set(definition.by_name)
    assert not both, f"keys are either served or refused: {both}"


def tasks_are_told_what_is_defined(connector: Connector, config: Config) -> None:
    """Check that there are at most as many tasks as requested, each with a valid config."""
    parsed = parse_config(connector.definition(), config)
    for most in (1, 2, 7):
        told = connector.task_configs(parsed, max_tasks=most)
        assert 1 <= len(told) <= most, f"{len(told)} tasks of at most {most}"
        for own in told:
            assert all(isinstance(text, str) for text in own.values()), f"texts: {own}"
            parse_config(connector.definition(), {**config, **own})
        assert told == connector.task_configs(parsed, max_tasks=most), "twice the same"


def secrets_stay_hidden(connector: Connector, config: Config) -> None:
    """Check that a task that fails at once reveals no PASSWORD, in its message, trace or log."""
    definition = connector.definition()
    secret = {
        key.name: SECRET
        for key in definition
        if key.kind is Kind.PASSWORD and checks.check(key, Secret(SECRET)) is None
    }
    parsed = parse_config(definition, {**config, **secret})
    assert all(isinstance(parsed[name], Secret) for name in secret), "passwords are parsed as such"
    said = [repr(parsed), str(parsed), repr(connector.validate(parsed))]
    said += [repr(own) for own in connector.task_configs(parsed, max_tasks=2)]
    context = MemorySourceContext() if isinstance(connector, SourceConnector) else None
    sink_context = MemorySinkContext()
    try:
        if isinstance(connector, SourceConnector):
            assert context is not None, "made above"
            run_source(connector, parsed, context, max_polls=1)
        elif isinstance(connector, SinkConnector):
            run_sink(connector, parsed, sink_context, [_one_record()])
    # Examine any exception.
    except Exception as error:  # noqa: BLE001
        said += [str(error), "".join(traceback.format_exception(error))]
    for used in (context, sink_context):
        if used is not None:
            said += [*used.lines, repr(used.kept)]
            used.close()
    assert not [text for text in said if SECRET in text], "a secret is shown"


def source_resumes(
    connector: SourceConnector, config: Config, *, max_repeated: int = 0
) -> list[SourceRecord]:
    """Check that a slice continues after any stored record, in a process without other state.

    `max_repeated` records may be repeated if the source has no place between them. Returns all
    records.
    """
    parsed = parse_config(connector.definition(), config)
    whole = _read(connector, parsed, [])
    assert whole, "the source has something to read"
    step = max(1, len(whole) // MAX_CUTS)
    for cut in (*range(1, len(whole), step), len(whole)):
        rest = _read(connector, parsed, whole[:cut])
        left = whole[cut:]
        assert rest[len(rest) - len(left) :] == left, f"behind record {cut} something is missing"
        assert len(rest) - len(left) <= max_repeated, f"behind record {cut} something is repeated"
    return whole


def sink_repeats_nothing(
    connector: SinkConnector,
    config: Config,
    batches: Sequence[list[SinkRecord]],
    contents: Callable[[], Any],
) -> None:
    """Check that batches put twice, and batches lost before their flush, are written once.

    `contents` returns the contents of the target.
    """
    assert connector.is_exactly_once, "only a connector that claims exactly once is checked for it"
    parsed = parse_config(connector.definition(), config)
    first, rest = list(batches[:1]), list(batches)
    for unflushed, again in ((first, first), (rest, rest), (first, rest)):
        context = MemorySinkContext()
        _put_without_flush(connector, parsed, context, unflushed)
        context.close()
        context = MemorySinkContext()
        run_sink(connector, parsed, context, again)
        context.close()
    once = contents()
    context = MemorySinkContext()
    run_sink(connector, parsed, context, rest)
    context.close()
    assert contents() == once, "repeated records are stored twice"


def _takes_paths(key: Key) -> bool:
    """Return whether a check tells paths of the home's files from others."""
    refused = key.check or (lambda _value: None)
    taken_and_refused = (
        (TAKEN_PATH, REFUSED_PATH),
        ([TAKEN_PATH], [REFUSED_PATH]),
        ([f"a={TAKEN_PATH}"], [f"a={REFUSED_PATH}"]),
    )
    for taken, other in taken_and_refused:
        # A check of another kind of value may fail for these.
        with suppress(TypeError, AttributeError, ValueError):
            if refused(taken) is None and refused(other) is not None:
                return True
    return False


def _read(
    connector: SourceConnector, parsed: Mapping[str, Any], stored: Sequence[SourceRecord]
) -> list[SourceRecord]:
    context = MemorySourceContext()
    context.store(stored)
    try:
        return run_source(connector, parsed, context)
    finally:
        context.close()


def _put_without_flush(
    connector: SinkConnector,
    parsed: Mapping[str, Any],
    context: MemorySinkContext,
    batches: Sequence[list[SinkRecord]],
) -> None:
    task = connector.task()
    task.start(context, parsed)
    try:
        begin_at = open_sink(task, batches)
        for batch in batches:
            if left := not_before(begin_at, batch):
                task.put(left)
    finally:
        task.stop()


def _one_record() -> list[SinkRecord]:
    return [sink_record({"id": 1})]
