"""Words and statuses for what failed: calls to brokers, waits for a turn, and refused changes."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from connectors.refusals import NotFound, NotServed, Refused
from gateway.access.turns import TooBusy
from gateway.kafka.errors import KafkaFailure, Kind

T = TypeVar("T")

STATUS: Final[Mapping[Kind, int]] = {Kind.NOT_FOUND: 404, Kind.CONFLICT: 409, Kind.USAGE: 400}
# Of a change of a connector that was refused; any other is a conflict.
OF_REFUSALS: Final[Mapping[type[Exception], int]] = {NotFound: 404, Refused: 403}
SLOW: Final = "See whether the brokers are up and try again"


def attempt(ask: Callable[[], T]) -> tuple[T | None, str, int]:
    """Return the result, or an error sentence with its HTTP status."""
    try:
        return ask(), "", 200
    except (TooBusy, KafkaFailure) as error:
        return None, sentence_of(error), 503
    except NotServed as error:
        return None, sentence_of(error), status_of(error)


def status_of(error: TooBusy | KafkaFailure | NotServed) -> int:
    if isinstance(error, NotServed):
        return OF_REFUSALS.get(type(error), 409)
    return 503 if isinstance(error, TooBusy) else STATUS.get(error.kind, 503)


def sentence_of(error: TooBusy | KafkaFailure | NotServed, *, faster: str = "") -> str:
    """Return what failed and the next step; `faster` says what would take the brokers less time."""
    if isinstance(error, NotServed):
        return f"{error}.".replace("..", ".")
    if isinstance(error, TooBusy):
        return f"Too much is asked at once: {error}. Try again in a moment."
    if error.name == "REQUEST_TIMED_OUT":
        return f"{error.message}. {SLOW}{f'; {faster}' if faster else ''}."
    next_step = f" {error.next_step[:1].upper()}{error.next_step[1:]}." if error.next_step else ""
    return f"{error.message}.{next_step}"
