"""The sentence on a call that failed, and what to do next."""

from console.queries.failures import sentence_of
from gateway.kafka.errors import KafkaFailure, Kind

LATE = KafkaFailure(
    name="REQUEST_TIMED_OUT", message="no answer in 4 s", value="", kind=Kind.TIMEOUT, next_step=""
)


def test_timeout_names_what_takes_less_time_where_the_caller_knows_it() -> None:
    common = "no answer in 4 s. See whether the brokers are up and try again"

    assert sentence_of(LATE) == f"{common}."
    assert sentence_of(LATE, faster="fewer topics") == f"{common}; fewer topics."
