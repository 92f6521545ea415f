"""Gives Django views the worker of their process."""

from collections.abc import Sequence

from gateway.rest.codes import ApiError, Code
from gateway.rest.router import Route, matched, segments_of
from gateway.rest.worker import Worker


class _Process:
    worker: Worker | None = None
    # Routes that are served beside views, each with its prefix.
    routes: Sequence[tuple[str, Route]] = ()


def take(worker: Worker, routes: Sequence[tuple[str, Route]]) -> None:
    """Set the worker of the views; called once, before the first request."""
    _Process.worker, _Process.routes = worker, routes


def routes() -> Sequence[tuple[str, Route]]:
    """Return the routes of this process that are not views."""
    return _Process.routes


def methods_at(path: str) -> list[str]:
    """Return the methods that are served beside views at a path, given as it was sent."""
    scope = {"path": path, "raw_path": path.encode("latin-1", "replace")}
    return sorted(
        {
            route.method
            for prefix, route in _Process.routes
            if (segments := segments_of(scope, prefix)) is not None
            and fits(route.path.strip("/").split("/"), segments)
        }
    )


def fits(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    return len(pattern) == len(segments) and matched(pattern, segments) is not None


def worker() -> Worker:
    found = _Process.worker
    if found is None:
        raise ApiError(
            Code.UNAVAILABLE,
            "this process is still starting: try again in a second",
            retry_after_s=1,
        )
    return found
