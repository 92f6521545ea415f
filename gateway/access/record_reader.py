"""Presents a caller to the admission of readers; see `gateway.kafka.readers.admission`. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.access.callers import Caller
from gateway.access.grants import Names
from gateway.access.operations import Kind, Operation

E = TypeVar("E", bound=Exception)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordReader(Generic[E]):
    """A caller who reads records of a cluster; `error` makes its interface's error of a reason."""

    caller: Caller
    cluster_id: str
    error: Callable[[str], E]

    @property
    def key(self) -> str:
        return self.caller.key

    @property
    def readable(self) -> Names:
        return self.caller.rights.names(
            Operation.READ_PAYLOADS, cluster=self.cluster_id, kind=Kind.TOPIC
        )

    def refusal(self, topic: str) -> E:
        found = self.caller.decide(Operation.READ_PAYLOADS, Kind.TOPIC, self.cluster_id, topic)
        return self.error(found.reason)

    def refusal_of_pattern(self, text: str) -> E:
        """Return the error for a pattern, as a subscription names it, that can match nothing."""
        remedy = self.caller.remedy(Operation.READ_PAYLOADS, Kind.TOPIC, "*")
        return self.error(f"{text} matches no topic whose payloads you may read: {remedy}")
