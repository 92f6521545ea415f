"""Connects the reader of a subscription with its socket."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from gateway.kafka.errors import KafkaFailure
from gateway.kafka.member import NotAssigned
from gateway.rest.codes import ApiError
from gateway.ws.actions import Action
from gateway.ws.outbox import Outbox
from gateway.ws.services import Services
from gateway.ws.session import Session
from gateway.ws.subscriptions import Subscriptions

log: Final = logging.getLogger(__name__)
# Stop reading records for a client with this much unsent, in characters, which are bytes.
MAX_UNSENT: Final = 128 * 1024
# Failures that need no line in the log: their message says all.
EXPECTED: Final = (ApiError, KafkaFailure, NotAssigned)
Report = Callable[[str, Exception], Sequence[Action]]
Task = asyncio.Task[None]


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of a socket that its readers use. `execute` executes actions."""

    services: Services
    session: Session
    outbox: Outbox
    execute: Callable[[Sequence[Action]], None]

    @property
    def subscriptions(self) -> Subscriptions:
        return self.session.subscriptions

    @property
    def is_full(self) -> bool:
        return self.outbox.size >= MAX_UNSENT

    @contextmanager
    def reporting(self, sid: str, report: Report) -> Iterator[None]:
        """Report a failure of the block to the session."""
        try:
            yield
        except Exception as error:
            # It concerns one subscription: the others and the socket continue.
            if not isinstance(error, EXPECTED):
                log.exception("ws.reader_failed")
            self.execute(report(sid, error))

    def count(self, records: int) -> None:
        """Count records that were read for the caller."""
        if self.session.caller is not None:
            self.services.traffic.add(self.session.caller.key, records=records)
