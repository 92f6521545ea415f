"""The rights that two have in common, against what each of them allows."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.access.grants import ANY, Grant, Resource, Rights, common
from gateway.access.operations import OPERATIONS, Kind, Operation, Role

PATTERNS = st.sampled_from(["*", "a", "a*", "ab", "ab*", "abc", "b*"])
NAMES = ("", "a", "ab", "abc", "abcd", "b", "bc", "c")
CLUSTERS = st.sampled_from([ANY, "one", "two"])
NAMED = [
    (operation, kind)
    for operation in Operation
    for kind in OPERATIONS[operation].kinds - {Kind.CLUSTER, Kind.CONSOLE}
]


@st.composite
def grants(draw: st.DrawFn) -> Grant:
    if draw(st.booleans()):
        return Grant(role=draw(st.sampled_from(Role)), cluster=draw(CLUSTERS))
    operation, kind = draw(st.sampled_from(NAMED))
    return Grant(operation=operation, cluster=draw(CLUSTERS), kind=kind, pattern=draw(PATTERNS))


@given(st.lists(grants(), max_size=5), st.lists(grants(), max_size=5))
def test_both_allow_what_they_have_in_common_and_nothing_else(
    first: list[Grant], second: list[Grant]
) -> None:
    one, other = Rights(first), Rights(second)

    both = common(one, other)

    for operation in Operation:
        for kind in OPERATIONS[operation].kinds:
            for cluster in ("one", "two", "three"):
                for name in NAMES:
                    asked = Resource(kind=kind, cluster=cluster, name=name)
                    wanted = one.allows(operation, asked) and other.allows(operation, asked)
                    assert both.allows(operation, asked) == wanted
