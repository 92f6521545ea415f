"""Says what keeps a connector from its work: failures, lost records and retries.

From the status of Kafka Connect's REST, to which Samsa adds `retrying` and `losing`.
"""

from collections.abc import Mapping
from typing import Any, Final

from cli.output import plain, say

FAILED: Final = "FAILED"
# Failures in a row from which a task counts as retrying, as in the console.
MIN_ATTEMPTS: Final = 2
# Of a message in a table.
MAX_CHARS: Final = 160


def is_retrying(task: Mapping[str, Any]) -> bool:
    """Return whether a task has failed more than once in a row; one attempt may fail by chance."""
    found = task.get("retrying")
    return found is not None and found["attempts"] >= MIN_ATTEMPTS


def trouble_of(status: Mapping[str, Any]) -> str:
    """Return what keeps a connector from its work, the worst first; empty if nothing does."""
    tasks = status["tasks"]
    lines = [_failure(one) for one in (status["connector"], *tasks) if one["state"] == FAILED]
    lines += [_loss(task["losing"]) for task in tasks if "losing" in task]
    lines += [_retry(task["retrying"]) for task in tasks if is_retrying(task)]
    return lines[0] if lines else ""


def _failure(one: Mapping[str, Any]) -> str:
    first = (str(one.get("trace", "")).strip().splitlines() or ["reason unknown"])[0]
    return f"failed: {_cut(first)}"


def _loss(found: Mapping[str, Any]) -> str:
    told = f"loses records: {found['lost']:,} of the last {found['read']:,} since {found['since']}"
    if found["dead_letters_since"] < found["lost_since"]:
        told += ", some without a dead letter"
    return "; ".join((told, *(_cause(cause) for cause in found["causes"][:1])))


def _cause(cause: Mapping[str, Any]) -> str:
    told = f"{cause['records']:,} × {plain(cause['reason'])}"
    return f"{told} ({plain(cause['advice'])})" if cause["advice"] else told


def _retry(found: Mapping[str, Any]) -> str:
    return (
        f"retrying since {found['since']}, next at {found['next_attempt']}: {_cut(found['reason'])}"
    )


def _cut(text: str) -> str:
    """Return the beginning of a message; `describe` shows a trace in full."""
    told = plain(text)
    return told if len(told) <= MAX_CHARS else f"{told[: MAX_CHARS - 1]}…"


def show_trouble(task: Mapping[str, Any]) -> None:
    """Print what a task loses and why it retries."""
    if "losing" in task:
        say(f"  {_loss(task['losing'])}")
        for cause in task["losing"]["causes"][1:]:
            say(f"    {_cause(cause)}")
    if "retrying" in task:
        say(f"  {_retry(task['retrying'])}; attempt {task['retrying']['attempts']}")
