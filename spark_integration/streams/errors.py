"""Errors in topologies, each with the step, the value and what to do."""


class StreamRefused(Exception):
    """A topology cannot be built or run as requested."""


def refused(step: str, problem: str, advice: str) -> StreamRefused:
    """Return the error of one step of a topology."""
    return StreamRefused(f"{step}: {problem}; {advice}")
