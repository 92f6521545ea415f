"""Whatever a view raises is answered in the one form that errors have."""

import pytest
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from rest_framework import exceptions

from gateway.kafka.errors import KafkaFailure, failure
from gateway.rest.codes import ApiError, Code
from gateway.rest.errors import MAX_MISTAKES, handler, mistakes


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (ApiError(Code.NO_PARTITION, "no"), 404, 40402),
        (failure("REQUEST_TIMED_OUT", "topic a"), 500, 50003),
        (failure("KAFKA_STORAGE_ERROR", "topic a"), 500, 50002),
        (failure("BROKER_NOT_AVAILABLE", "127.0.0.1:1"), 503, 50302),
        (failure("LEADER_NOT_AVAILABLE", "topic a"), 404, 40404),
        (failure("GROUP_ID_NOT_FOUND", "group a"), 404, 40405),
        (failure("TOPIC_AUTHORIZATION_FAILED", "topic a"), 403, 40301),
        (failure("SASL_AUTHENTICATION_FAILED", "127.0.0.1:1"), 401, 40101),
        (failure("UNKNOWN_TOPIC_OR_PARTITION", "topic a"), 404, 40401),
        (exceptions.NotAuthenticated(), 401, 40101),
        (exceptions.PermissionDenied(), 403, 40301),
        (exceptions.MethodNotAllowed("PUT"), 405, 405),
        (exceptions.NotAcceptable(), 406, 406),
        (exceptions.UnsupportedMediaType("text/plain"), 415, 415),
        (exceptions.ParseError(), 400, 400),
        (exceptions.ValidationError({"a": ["wrong"]}), 400, 400),
        (exceptions.Throttled(), 429, 429),
        (Http404(), 404, 404),
        (RequestDataTooBig(), 413, 413),
        (UnreadablePostError(), 400, 400),
        (OperationalError("database is locked"), 503, 503),
        (InterfaceError("connection already closed"), 503, 503),
        (ZeroDivisionError(), 500, 500),
    ],
)
def test_each_error_has_its_code(raised: Exception, status: int, code: int) -> None:
    answer = handler(raised, {})

    assert answer.status_code == status
    assert set(answer.data) == {"error_code", "message"}
    assert answer.data["error_code"] == code
    assert answer.data["message"]


def test_a_fault_of_ours_tells_nothing_of_itself() -> None:
    assert "secret" not in handler(RuntimeError("secret"), {}).data["message"]


def test_a_locked_database_is_named_without_its_path() -> None:
    raised = OperationalError("database is locked: waited 6 s for /somewhere/connect.db-writer")

    answer = handler(raised, {})

    assert answer["Retry-After"] == "5"
    assert answer.data["message"].startswith("the database is locked by another process")
    assert "/" not in answer.data["message"]


def test_who_should_wait_is_told_how_long() -> None:
    refused = ApiError(Code.TOO_MANY, "slow down", retry_after_s=3)

    assert handler(refused, {})["Retry-After"] == "3"


def test_all_mistakes_of_a_body_are_told_in_one_sentence() -> None:
    detail = {"a": ["too long"], "b": {"c": ["missing"]}, "non_field_errors": ["odd"]}

    assert mistakes(detail) == "a: too long; b.c: missing; odd"
    assert mistakes({f"f{i}": ["x"] for i in range(99)}).count(";") == MAX_MISTAKES - 1


def test_kafka_failures_keep_their_advice() -> None:
    failed: KafkaFailure = failure("UNKNOWN_TOPIC_OR_PARTITION", "topic a")

    assert failed.next_step in handler(failed, {}).data["message"]
