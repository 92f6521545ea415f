"""Decides which topics and groups the caller of a socket may use. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from gateway.access.callers import Caller
from gateway.access.grants import Names
from gateway.access.operations import Kind, Operation
from gateway.kafka.topic_pattern import TopicPattern
from gateway.rest.codes import ApiError, Code


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rights of a caller in one cluster. A refusal is None if nothing is refused."""

    caller: Caller
    cluster_id: str

    @property
    def readable(self) -> Names:
        """Return the topics whose records the caller may read."""
        return self.caller.rights.names(
            Operation.READ_PAYLOADS, cluster=self.cluster_id, kind=Kind.TOPIC
        )

    def refusal(
        self, operation: Operation, names: Collection[str], kind: Kind = Kind.TOPIC
    ) -> ApiError | None:
        for name in names:
            decision = self.caller.decide(operation, kind, self.cluster_id, name)
            if not decision.is_allowed:
                return ApiError(Code.NOT_ALLOWED, decision.reason)
        return None

    def refusal_to_read(
        self, topics: Collection[str], *, group: str | None, pattern: TopicPattern | None
    ) -> ApiError | None:
        if group is not None:
            refusal = self.refusal(Operation.RESET_GROUPS, [group], Kind.GROUP)
            if refusal is not None:
                return refusal
        if pattern is not None and not self.readable:
            return ApiError(
                Code.NOT_ALLOWED,
                f"{pattern.text!r} matches no topic whose payloads you may read: "
                f"{self.caller.remedy(Operation.READ_PAYLOADS, Kind.TOPIC, '*')}",
            )
        return self.refusal(Operation.READ_PAYLOADS, topics)
