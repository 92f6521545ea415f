"""What the overview calls fine, for users who may see all, a part, or nothing of a kind."""

from console.monitoring.verdicts import Verdict
from console.queries.fine import Seen, fine_words
from gateway.access.grants import EVERYTHING, NOTHING, Names

ALL = Seen(has_brokers=True, topics=EVERYTHING, groups=EVERYTHING, connectors=EVERYTHING)


def test_kinds_that_a_user_may_not_see_are_named_and_not_called_fine() -> None:
    part = Names(prefixes=("walk-",))
    seen = Seen(has_brokers=False, topics=part, groups=NOTHING, connectors=NOTHING)

    assert fine_words(seen, []) == (
        "Brokers: you may see none. Topics that you may see: every partition has a leader."
        " Groups: you may see none. Connectors: you may see none."
    )
    assert not seen.is_nothing


def test_every_group_keeps_up_only_where_each_is_ok() -> None:
    assert "Every group keeps up." in fine_words(ALL, [Verdict.OK] * 2)
    mixed = [Verdict.OK, Verdict.NO_MEMBERS, Verdict.OK, Verdict.UNKNOWN]
    assert "No group needs attention: 2 OK, 1 no members, 1 unknown." in fine_words(ALL, mixed)
    assert "There are no groups." in fine_words(ALL, [])
