"""What is read from pages of the console, in the markup that they have."""

from bench.markup import read
from bench.verdict_pages import Mark, badge_of, needs_of, parts_of, rows_of, verdict_of

RAIL = '<nav><a id="rail-groups">Groups<span class="count bad">1,203</span></a></nav>'
NEEDS = """
<section id="needs"><div class="need"><span class="st bad">Stopped</span><div>Group billing stopped
<p>3 records wait.</p></div><a href="/group?name=billing&amp;cluster=a">See the group</a></div>
<div class="need"><span class="st bad">Offline</span><div>Broker 2</div></div></section>
"""
ROW = """
<table><tbody><tr><td><span class="st ok" title="It reads.">OK</span></td><th>
<a href="/group?name=a%2Fb">a/b</a></th><td><svg><polyline points="1,2"/></svg>24</td></tr></tbody>
</table>
"""
GROUP = f"""
<section class="card verdict warn" id="verdict"><div><span class="st warn">Slow</span>
<h2>1 min behind<br>and slow</h2></div></section><section>{ROW}</section>
"""


def test_overview_lists_groups_in_need_among_others() -> None:
    needs = needs_of(read(NEEDS))

    words = "Stopped Group billing stopped 3 records wait. See the group"
    assert needs == [("billing", Mark(colour="bad", verdict="Stopped", words=words))]


def test_a_row_of_the_list_has_its_mark_with_what_hovering_shows() -> None:
    assert rows_of(read(ROW)) == [
        ("a/b", Mark(colour="ok", verdict="OK", words="OK a/b 24 It reads."))
    ]


def test_the_page_of_a_group_has_a_verdict_above_and_marks_in_its_tables() -> None:
    page = read(GROUP)

    assert verdict_of(page) == Mark(
        colour="warn", verdict="Slow", words="Slow 1 min behind and slow"
    )
    assert [mark.colour for mark in parts_of(page)] == ["ok"]


def test_the_badge_is_a_number_or_absent() -> None:
    assert badge_of(read(RAIL)) == 1203
    assert badge_of(read('<nav><a id="rail-groups">Groups</a></nav>')) == 0
