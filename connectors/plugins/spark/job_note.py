"""What a job remembers that has no table: a note of its task, beside the offsets of the group.

Of use after an end only: the ids of topics, and how large a batch may be. Offsets in it tell a
commit of ours from one of somebody else, and are no place to begin at.
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
        context.log(f"what the task has noted of topics and batches cannot be read: {error!r}")
        return new_state()


def keep(context: JobContext, state: State) -> None:
    context.keep_note(json.loads(dump(replace(state, told={}, columns={}))))
