"""What callers are refused with: people need a role, and programs another token."""

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.access.operations import OPERATIONS, Kind, Operation
from gateway.access.token_scopes import SCOPES, Scope


def refusal(kind: CallerKind, operation: Operation, of: Kind, name: str = "") -> str:
    caller = Caller(kind=kind, name="app", rights=Rights())
    decision = caller.decide(operation, of, "c", name)
    assert not decision.is_allowed
    return decision.reason


@pytest.mark.parametrize(
    ("operation", "kind", "name", "option"),
    [
        (Operation.READ_PAYLOADS, Kind.TOPIC, "orders", "--read orders"),
        (Operation.PRODUCE, Kind.TOPIC, "orders", "--write orders"),
        (Operation.RESET_GROUPS, Kind.GROUP, "billing", "--group billing"),
        (Operation.VIEW, Kind.CONNECTOR, "a b", "--connector 'a b'"),
        (Operation.RESET_GROUPS, Kind.GROUP, "$(reboot)", "--group '$(reboot)'"),
        (Operation.DELETE_TOPICS, Kind.TOPIC, "orders", "--admin"),
        (Operation.VIEW, Kind.CLUSTER, "", "--admin"),
    ],
)
def test_a_program_is_told_the_command_that_makes_its_token(
    operation: Operation, kind: Kind, name: str, option: str
) -> None:
    reason = refusal(CallerKind.TOKEN, operation, kind, name)

    assert reason.startswith(f"You may not {OPERATIONS[operation].verb} on ")
    assert reason.endswith(
        f"Create a token with that right, by `./samsa tokens create NAME {option}` and the options"
        " for the rights that token app has."
    )


@pytest.mark.parametrize("kind", [CallerKind.USER, CallerKind.SESSION])
def test_a_person_is_told_the_role_and_the_page(kind: CallerKind) -> None:
    reason = refusal(kind, Operation.RESET_GROUPS, Kind.GROUP, "billing")

    assert "The roles operator and admin include it" in reason
    assert reason.endswith("on the Users page.")


@pytest.mark.parametrize("scope", [scope for scope in Scope if SCOPES[scope].kind is not None])
def test_the_option_of_a_scope_gives_what_was_refused(scope: Scope) -> None:
    row = SCOPES[scope]
    assert row.kind is not None

    for operation in row.operations:
        reason = refusal(CallerKind.TOKEN, operation, row.kind, "x")
        assert "--admin" not in reason
