"""CreateAcls and DeleteAcls: every rule is refused by itself, and too many with the connection."""

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from brokers.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from brokers.server.handlers import create_acls, delete_acls
from brokers.server.handlers.describe_acls import MAX_REFUSED
from tests.fakes.asking import Desk

DISABLED = ErrorCode.SECURITY_DISABLED


def create(count: int) -> list[int]:
    with Desk() as desk:
        request = CreateAclsRequest(creations=[AclCreation()] * count)
        return [each.error_code for each in desk.ask(create_acls, 3, request).results]


def delete(count: int) -> list[int]:
    with Desk() as desk:
        request = DeleteAclsRequest(filters=[DeleteAclsFilter()] * count)
        return [each.error_code for each in desk.ask(delete_acls, 3, request).filter_results]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_every_rule_is_refused(count: int) -> None:
    assert create(count) == [DISABLED] * count
    assert delete(count) == [DISABLED] * count


def test_more_rules_than_anybody_has_close_the_connection() -> None:
    with pytest.raises(AssertionError, match=f"{MAX_REFUSED} are allowed"):
        create(MAX_REFUSED + 1)
    with pytest.raises(AssertionError, match=f"{MAX_REFUSED} are allowed"):
        delete(MAX_REFUSED + 1)
