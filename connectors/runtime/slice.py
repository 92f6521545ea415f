"""Runs one slice of a task of any kind."""

from connectors.runtime import job_slice, sink_slice, source_slice
from connectors.runtime.ports import Ports, SliceEnd, TaskSpec
from connectors.runtime.step_making import make
from connectors.sdk.connector import JobConnector, SinkConnector


def run(spec: TaskSpec, ports: Ports) -> SliceEnd:
    """Run a slice; errors of the task or the cluster do not escape."""
    if issubclass(spec.plugin, JobConnector):
        return job_slice.run(spec, ports)
    if issubclass(spec.plugin, SinkConnector):
        return sink_slice.run(spec, ports, make)
    return source_slice.run(spec, ports, make)
