"""Rights of tokens in words."""

from console.queries.tokens import in_words
from gateway.access.grants import FULL_ADMIN, Grant
from gateway.access.operations import Kind, Operation
from gateway.access.token_scopes import Scope, grants_of, together


def test_rights_read_as_the_scopes_that_they_were_chosen_by() -> None:
    rights = together(
        [
            *grants_of(Scope.READ, "orders.*"),
            *grants_of(Scope.WRITE, "orders.*"),
            *grants_of(Scope.GROUP, "billing", cluster="c"),
            *grants_of(Scope.CONNECTOR, "shop-*"),
            *grants_of(Scope.SECRET, "shop"),
        ]
    )

    assert in_words(reversed(rights)) == [
        "read orders.*",
        "write orders.*",
        "group billing in one cluster",
        "connector shop-*",
        "secret shop",
    ]


def test_what_is_no_whole_scope_reads_as_it_stands() -> None:
    alone = Grant(operation=Operation.PRODUCE, kind=Kind.TOPIC, pattern="x")

    assert in_words([alone]) == ["produce: topics x"]
    assert in_words([FULL_ADMIN]) == ["admin"]
