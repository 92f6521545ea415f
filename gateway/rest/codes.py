"""Lists every error of the REST interfaces: its code, its status and its sentence.

Pure. The codes are those of the published interface, which clients check; `message` says what was
wrong, with the value, and what to do next.
"""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.kafka.errors import KafkaFailure, Kind

# The message is sent in one header at most, and logged.
MAX_MESSAGE: Final = 2_000
# How a program, and a browser that opens an address, are asked for credentials.
CHALLENGE: Final = 'Basic realm="Samsa", charset="UTF-8"'
NAVIGATE: Final = "navigate"


class Code(Enum):
    """The code in the body, and the HTTP status of the answer."""

    # HTTP's own errors: clients of the published interface expect the status as the code.
    BAD_REQUEST = (400, 400)
    NOT_FOUND = (404, 404)
    METHOD_NOT_ALLOWED = (405, 405)
    NOT_ACCEPTABLE = (406, 406)
    TIMED_OUT = (408, 408)
    TOO_LARGE = (413, 413)
    UNSUPPORTED_TYPE = (415, 415)
    UNPROCESSABLE = (422, 422)
    NEEDS_SOCKET = (426, 426)
    TOO_MANY = (429, 429)
    INTERNAL = (500, 500)
    UNAVAILABLE = (503, 503)
    # Errors of Kafka's REST interfaces.
    CONSUMER_CONFIG = (40001, 422)
    KAFKA_REFUSED = (40002, 400)
    NOT_AUTHENTICATED = (40101, 401)
    NOT_ALLOWED = (40301, 403)
    NO_TOPIC = (40401, 404)
    NO_PARTITION = (40402, 404)
    # A consumer instance in v2 and a partition without a host in v3 share this number.
    NOT_THERE = (40403, 404)
    NO_LEADER = (40404, 404)
    NO_GROUP = (40405, 404)
    OTHER_FORMAT = (40601, 406)
    SERIALIZATION_TIMED_OUT = (40801, 408)
    SUBSCRIBED_OTHERWISE = (40901, 409)
    CONSUMER_EXISTS = (40902, 409)
    ILLEGAL_STATE = (40903, 409)
    # Our own: Kafka deletes internal topics like any other.
    NEEDS_FORCE = (40904, 409)
    # Our own: the published interface has no limit on consumers.
    TOO_MANY_CONSUMERS = (42901, 429)
    NO_KEY_SCHEMA = (42201, 422)
    NO_VALUE_SCHEMA = (42202, 422)
    BAD_JSON = (42203, 422)
    BAD_CONSUMER_CONFIG = (42204, 422)
    BAD_SCHEMA = (42205, 422)
    BAD_PAYLOAD = (42206, 422)
    NOT_SERIALIZABLE = (42207, 422)
    BAD_BATCH = (42208, 422)
    KAFKA_FAILED = (50002, 500)
    KAFKA_RETRY = (50003, 500)
    NO_BROKER = (50302, 503)

    @property
    def number(self) -> int:
        return self.value[0]

    @property
    def status(self) -> int:
        return self.value[1]


class ApiError(Exception):
    """A call that cannot be served; `retry_after_s` is set if waiting helps."""

    def __init__(self, code: Code, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message[:MAX_MESSAGE]
        self.retry_after_s = retry_after_s

    def value(self) -> dict[str, object]:
        return {"error_code": self.code.number, "message": self.message}

    def body(self) -> bytes:
        return json.dumps(self.value()).encode()

    def headers(self, fetch_mode: str | None) -> list[tuple[str, str]]:
        """Return the headers of the answer; `fetch_mode` is the header Sec-Fetch-Mode of a call.

        A page's own call is not asked for a password: the browser would ask its user.
        """
        headers = []
        if self.retry_after_s is not None:
            headers.append(("Retry-After", str(self.retry_after_s)))
        if self.code is Code.NOT_AUTHENTICATED and fetch_mode in {None, NAVIGATE}:
            headers.append(("WWW-Authenticate", CHALLENGE))
        return headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The REST code of a failure's Kafka name."""

    name: str
    code: Code


# Other failures are KAFKA_RETRY if a retry may help, else KAFKA_FAILED.
MEANINGS: Final = {
    row.name: row.code
    for row in (
        Meaning(name="UNKNOWN_TOPIC_OR_PARTITION", code=Code.NO_TOPIC),
        Meaning(name="UNKNOWN_TOPIC_ID", code=Code.NO_TOPIC),
        Meaning(name="NOT_LEADER_OR_FOLLOWER", code=Code.NOT_THERE),
        Meaning(name="LEADER_NOT_AVAILABLE", code=Code.NO_LEADER),
        Meaning(name="GROUP_ID_NOT_FOUND", code=Code.NO_GROUP),
        Meaning(name="SASL_AUTHENTICATION_FAILED", code=Code.NOT_AUTHENTICATED),
        Meaning(name="TOPIC_AUTHORIZATION_FAILED", code=Code.NOT_ALLOWED),
        Meaning(name="GROUP_AUTHORIZATION_FAILED", code=Code.NOT_ALLOWED),
        Meaning(name="CLUSTER_AUTHORIZATION_FAILED", code=Code.NOT_ALLOWED),
        Meaning(name="TOPIC_ALREADY_EXISTS", code=Code.KAFKA_REFUSED),
        Meaning(name="INVALID_TOPIC_EXCEPTION", code=Code.KAFKA_REFUSED),
        Meaning(name="INVALID_REPLICATION_FACTOR", code=Code.KAFKA_REFUSED),
        Meaning(name="INVALID_PARTITIONS", code=Code.KAFKA_REFUSED),
        Meaning(name="INVALID_REPLICA_ASSIGNMENT", code=Code.KAFKA_REFUSED),
        Meaning(name="INVALID_CONFIG", code=Code.KAFKA_REFUSED),
        Meaning(name="INVALID_REQUEST", code=Code.KAFKA_REFUSED),
        Meaning(name="POLICY_VIOLATION", code=Code.KAFKA_REFUSED),
        Meaning(name="UNSUPPORTED_VERSION", code=Code.KAFKA_REFUSED),
        Meaning(name="SECURITY_DISABLED", code=Code.KAFKA_REFUSED),
        Meaning(name="MESSAGE_TOO_LARGE", code=Code.TOO_LARGE),
        Meaning(name="BROKER_NOT_AVAILABLE", code=Code.NO_BROKER),
    )
}


def known(raised: Exception) -> ApiError | None:
    """Return the error of an exception that calls raise on purpose; None for any other one."""
    if isinstance(raised, ApiError):
        return raised
    return from_kafka(raised) if isinstance(raised, KafkaFailure) else None


def internal() -> ApiError:
    """Return the error of a bug of ours; its cause is for the log alone."""
    return ApiError(Code.INTERNAL, "the gateway failed; its log says how, `./samsa logs` too")


def from_kafka(failed: KafkaFailure) -> ApiError:
    """Return the REST error of a failure of the cluster."""
    fallback = Code.KAFKA_RETRY if failed.kind is Kind.TIMEOUT else Code.KAFKA_FAILED
    code = MEANINGS.get(failed.name, fallback)
    advice = f"; {failed.next_step}" if failed.next_step else ""
    return ApiError(code, f"{failed}{advice}")
