"""The worker of this process, for views, which Django makes without one."""

from gateway.rest.codes import ApiError, Code
from gateway.rest.worker import Worker


class _Process:
    worker: Worker | None = None


def take(worker: Worker) -> None:
    """Let views serve with a worker; called once, before the first request."""
    _Process.worker = worker


def worker() -> Worker:
    found = _Process.worker
    if found is None:
        raise ApiError(
            Code.UNAVAILABLE,
            "this process is still starting: try again in a second",
            retry_after_s=1,
        )
    return found
