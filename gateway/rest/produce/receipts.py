"""Words the result of a record: its partition and offset, or the error. Pure."""

import json
from collections.abc import Mapping
from typing import Final

from gateway.kafka.values import Delivered
from gateway.rest.codes import ApiError, known
from gateway.rest.produce.drafts import Draft
from gateway.rest.produce.formats import Format, time_text

END: Final = b"\r\n"
OK: Final = 200
UNPROCESSABLE: Final = 422
# Codes above this are the interface's own, of five digits.
OWN_CODES: Final = 1_000


class Wording:
    """Formats the results of one call, whose records all go to one topic."""

    def __init__(self, cluster_id: str, topic: str) -> None:
        # Precomputed text, since a stream may need many thousand receipts per second.
        names = json.dumps({"cluster_id": cluster_id, "topic_name": topic}, separators=(",", ":"))
        self._place = f'{names[1:-1]},"partition_id":'

    def receipt(self, told: Delivered, draft: Draft) -> bytes:
        time = told.timestamp_ms
        shown = "null" if time is None else f'"{time_text(time)}"'
        return (
            f'{{"error_code":{OK},{self._place}{told.partition},"offset":{told.offset},'
            f'"timestamp":{shown}{_datum("key", draft.key)}{_datum("value", draft.value)}}}'
        ).encode()

    def fields(self, told: Delivered, draft: Draft) -> Mapping[str, object]:
        """Return a receipt as values, without the error code."""
        found: dict[str, object] = json.loads(self.receipt(told, draft))
        del found["error_code"]
        return found


def _datum(name: str, given: tuple[Format, int] | None) -> str:
    return "" if given is None else f',"{name}":{{"type":"{given[0].value}","size":{given[1]}}}'


def in_stream(error: ApiError) -> dict[str, object]:
    """Return an error in the form of a stream: an invalid record has its code in the text only."""
    if error.code.status == UNPROCESSABLE and error.code.number > OWN_CODES:
        text = f"Error: {error.code.number} : {error.message}"
        return {"error_code": UNPROCESSABLE, "message": text}
    return error.value()


def api_error(failed: Exception) -> ApiError:
    """Return the failure of a record as an error of the interface."""
    error = known(failed)
    assert error is not None, "a record fails by what calls raise on purpose"
    return error
