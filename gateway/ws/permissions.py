"""Decides which topics and groups the caller of a socket may use. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from gateway.access.callers import Caller
from gateway.access.operations import Kind, Operation
from gateway.access.record_reader import RecordReader
from gateway.kafka.readers.admission import NothingReadable, admit, admit_by_pattern
from gateway.kafka.topic_pattern import TopicPattern
from gateway.rest.codes import ApiError
from gateway.rest.gate import require
from gateway.rest.readers import reader_of


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rights of a caller in one cluster. A refusal is None if nothing is refused."""

    caller: Caller
    cluster_id: str

    @property
    def reader(self) -> RecordReader[ApiError]:
        return reader_of(self.caller, self.cluster_id)

    def refusal(
        self, operation: Operation, names: Collection[str], kind: Kind = Kind.TOPIC
    ) -> ApiError | None:
        try:
            for name in names:
                require(self.caller, self.cluster_id, operation, kind, name)
        except ApiError as error:
            return error
        return None

    def refusal_to_read(
        self, topics: Collection[str], *, group: str | None, pattern: TopicPattern | None
    ) -> ApiError | None:
        if group is not None:
            refusal = self.refusal(Operation.RESET_GROUPS, [group], Kind.GROUP)
            if refusal is not None:
                return refusal
        try:
            if pattern is not None:
                admit_by_pattern(self.reader)
            admit(self.reader, topics)
        except NothingReadable:
            assert pattern is not None, "only a pattern may match nothing"
            return self.reader.refusal_of_pattern(repr(pattern.text))
        except ApiError as error:
            return error
        return None
