"""Words and statuses for calls to brokers that failed, or for which there was no turn."""

from collections.abc import Mapping
from typing import Final

from gateway.access.turns import TooBusy
from gateway.kafka.errors import KafkaFailure, Kind

STATUS: Final[Mapping[Kind, int]] = {Kind.NOT_FOUND: 404, Kind.CONFLICT: 409, Kind.USAGE: 400}
SLOW: Final = "See whether the brokers are up and try again; fewer topics take less time."


def status_of(error: TooBusy | KafkaFailure) -> int:
    return 503 if isinstance(error, TooBusy) else STATUS.get(error.kind, 503)


def sentence_of(error: TooBusy | KafkaFailure) -> str:
    if isinstance(error, TooBusy):
        return f"Too much is asked at once: {error}. Try again in a moment."
    if error.name == "REQUEST_TIMED_OUT":
        return f"{error.message}. {SLOW}"
    next_step = f" {error.next_step[:1].upper()}{error.next_step[1:]}." if error.next_step else ""
    return f"{error.message}.{next_step}"
