"""What errors of a Connect server's client say about the server."""

from enum import Enum
from typing import Any

import pytest

from spark_integration.jobs.faults import Fault, fault_of


class Code(Enum):
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16
    INTERNAL = 13


class SparkError(Exception):
    def __init__(self, said: str, code: Code) -> None:
        super().__init__(said)
        self._code = code

    def getGrpcStatusCode(self) -> Code:  # noqa: N802 (Spark's name)
        return self._code


class RpcError(Exception):
    def code(self) -> Code:
        return Code.UNAVAILABLE


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (SparkError("connection refused", Code.UNAVAILABLE), Fault.AWAY),
        (RpcError("connection refused"), Fault.AWAY),
        (SparkError("Invalid authentication token", Code.UNAUTHENTICATED), Fault.TOKEN),
        (SparkError("[INVALID_HANDLE.SESSION_NOT_FOUND] x", Code.INTERNAL), Fault.SESSION),
        (SparkError("[INVALID_HANDLE.SESSION_CHANGED] x", Code.UNAVAILABLE), Fault.SESSION),
        (SparkError("[DIVIDE_BY_ZERO] x", Code.INTERNAL), Fault.QUERY),
        (ValueError("x"), Fault.QUERY),
    ],
)
def test_an_error_is_of_the_server_of_the_session_or_of_the_query(error: Any, fault: Fault) -> None:
    assert fault_of(error) is fault
