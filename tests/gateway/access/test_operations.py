"""The tables of operations and roles."""

from gateway.access.models import WORD_CHARS
from gateway.access.operations import ENTRUSTED, GOVERNING, OPERATIONS, ROLES, Kind, Operation, Role


def test_every_operation_and_role_has_a_row_with_a_sentence() -> None:
    assert set(OPERATIONS) == set(Operation)
    assert set(ROLES) == set(Role)
    assert all(row.sentence.endswith(".") and row.kinds for row in OPERATIONS.values())
    assert all(row.sentence.endswith(".") for row in ROLES.values())


def test_a_viewer_looks_and_does_nothing_else() -> None:
    assert ROLES[Role.VIEWER].operations == {Operation.VIEW}


def test_payloads_exports_and_new_connectors_are_rights_of_their_own() -> None:
    own = {Operation.READ_PAYLOADS, Operation.EXPORT, Operation.CREATE_CONNECTORS}

    assert not own & ROLES[Role.VIEWER].operations
    assert own <= ROLES[Role.OPERATOR].operations


def test_an_operator_governs_nobody_uses_no_secret_and_an_admin_does_everything() -> None:
    assert not ROLES[Role.OPERATOR].operations & (GOVERNING | ENTRUSTED)
    assert ROLES[Role.ADMIN].operations == set(Operation)


def test_what_governs_concerns_the_console_and_nothing_else_does() -> None:
    on_console = {o for o, row in OPERATIONS.items() if Kind.CONSOLE in row.kinds}

    assert on_console == GOVERNING


def test_every_word_fits_its_column() -> None:
    words = [*Operation, *Role, *Kind]

    assert max(len(word.value) for word in words) <= WORD_CHARS
