"""Stores the state of a job without a table: a note of its task, beside the group's offsets.

It is only used after a restart: topic ids, and the limit of a batch. Its offsets tell our own
commits from those of others, and are never where reading begins.
"""

import json
from dataclasses import replace

from connectors.plugins.spark.batches import State, dump, load, new_state
from connectors.sdk.connector import JobContext


def read(context: JobContext) -> State:
    note = context.note()
    if note is None:
        return new_state()
    try:
        return load(json.dumps(dict(note)).encode())
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        context.log(f"the task's note of topics and batches cannot be read: {error!r}")
        return new_state()


def keep(context: JobContext, state: State) -> None:
    context.keep_note(json.loads(dump(replace(state, told={}, columns={}))))
