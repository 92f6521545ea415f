"""Presents callers of programs to the admission of readers, with the errors of REST."""

from functools import partial

from gateway.access.callers import Caller
from gateway.access.record_reader import RecordReader
from gateway.rest.codes import ApiError, Code


def reader_of(caller: Caller, cluster_id: str) -> RecordReader[ApiError]:
    return RecordReader(
        caller=caller, cluster_id=cluster_id, error=partial(ApiError, Code.NOT_ALLOWED)
    )
