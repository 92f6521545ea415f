"""Lists what needs attention, worst first: a sentence each, with its cause and a link to a remedy.

Pure: from data of the database, the agent of this host and the collector.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from brokers.controlplane.selectors import Leaderless
from console import durations, group_names, quantities
from console.monitoring.tables import GroupRow
from console.monitoring.verdicts import SEVERITY, Verdict
from console.queries.brokers import BrokerRow
from console.queries.connector_states import (
    FAILED,
    LOSING,
    LOSING_SOME,
    PARTLY,
    RETRYING,
    RUNNING,
    STATES,
    Owner,
    Trouble,
)
from console.queries.lag import (
    MARKS,
    NOT_KNOWN,
    Mark,
    eta_words,
    lag_seconds,
    mark_of,
    owned_words,
    rebalance_words,
)
from console.queries.links import link
from console.queries.live import Live
from gateway.kafka import shown_names

# Groups that are named; the others are counted, since their own page lists them.
NAMED_GROUPS: Final = 5
# Connectors that are named, for the same reason.
NAMED_CONNECTORS: Final = 3
# As in the alert rules of docs/monitoring.
LOW_DISK: Final = 0.15
# Twice the alert rule's value, which averages over minutes: a single moment must not flicker.
SLOW_LOOP_MS: Final = 100.0
# With less free space, a broker may be unable to clean its logs.
NO_DISK: Final = 0.05
# What takes or grows more than this is what the advice is about.
HALF: Final = 0.5
FULL_SOON_DAYS: Final = 7.0
FULL_NOW_DAYS: Final = 1.0


class Rank(IntEnum):
    """The order of needs: loss of records, or an outage for everybody, comes first."""

    SET_BACK = 1
    # A broker comes before the partitions that it leads: it is their cause.
    BROKER = 2
    NO_LEADER = 3
    AGENT = 4
    LOSS_AHEAD = 5
    DISK_FULL = 6
    COLLECTOR = 7
    SILENT = 8
    REBALANCING = 9
    STOPPED = 10
    STALLED = 11
    CONNECTOR = 12
    DISK_LOW = 13
    LOOP = 14
    RETRYING = 15
    REWOUND = 16
    UNCOMMITTED = 17
    FALLING_BEHIND = 18
    MORE_GROUPS = 19
    MORE_CONNECTORS = 20
    CUT = 21


# By the word of a broker's state; the other states need no attention, or end without it.
BROKER_NEEDS: Final = {
    "Fenced": (
        Rank.BROKER,
        "is not serving",
        ", so it leads nothing. It comes back by itself once it runs and has caught up.",
    ),
    "Stopped": (
        Rank.BROKER,
        "is stopped",
        ". Partitions without another replica cannot be read or written until it is started.",
    ),
    "Silent": (
        Rank.SILENT,
        "serves, but sends the collector nothing",
        ". Its numbers are old, and so are those of the partitions that it leads.",
    ),
}
GROUP_RANKS: Final = {
    Verdict.LOSS_AHEAD: Rank.LOSS_AHEAD,
    Verdict.REBALANCING: Rank.REBALANCING,
    Verdict.STOPPED: Rank.STOPPED,
    Verdict.STALLED: Rank.STALLED,
    Verdict.REWOUND: Rank.REWOUND,
    Verdict.UNCOMMITTED: Rank.UNCOMMITTED,
    Verdict.FALLING_BEHIND: Rank.FALLING_BEHIND,
}
# The text of a verdict, behind the name of the group.
GROUP_WORDS: Final = {
    Verdict.LOSS_AHEAD: "is about to lose records that it has not read",
    Verdict.REBALANCING: "rebalances again and again",
    Verdict.STOPPED: "commits no more while records wait",
    Verdict.STALLED: "commits, but gets no further",
    Verdict.REWOUND: "was set back and reads again",
    Verdict.UNCOMMITTED: "owns partitions without committing in them",
    Verdict.FALLING_BEHIND: "falls behind",
}


# The cause, if the text does not say it.
GROUP_CAUSES: Final = {
    Verdict.LOSS_AHEAD: " Retention deletes unread records before the group reaches them.",
    Verdict.STALLED: " A record that its consumer cannot get past is the usual cause.",
    Verdict.FALLING_BEHIND: " It reads less than arrives.",
}


# By the state of a connector: its rank, a sentence about it, and the consequence.
CONNECTOR_NEEDS: Final = {
    FAILED: (
        Rank.CONNECTOR,
        "Connector {name} has failed",
        "It does nothing until it is fixed or restarted.",
    ),
    PARTLY: (
        Rank.CONNECTOR,
        "Tasks of connector {name} have failed",
        "Its other tasks run; the failed ones do nothing until they are fixed or restarted.",
    ),
    LOSING: (Rank.CONNECTOR, "Connector {name} loses most of its records", ""),
    LOSING_SOME: (Rank.RETRYING, "Connector {name} loses records", ""),
    RETRYING: (
        Rank.RETRYING,
        "Connector {name} makes no progress",
        "It continues once an attempt succeeds.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A problem: the sentence describes it, the cause explains it, the link leads to it."""

    rank: Rank
    state: str
    word: str
    sentence: str
    cause: str
    link: str
    link_text: str


def ranked(*found: Iterable[Need]) -> list[Need]:
    """Return all needs, the worst first, stable within a rank."""
    return sorted((need for needs in found for need in needs), key=lambda need: need.rank)


def of_agent(
    message: str | None, *, is_gone: bool, trouble: str, cluster_id: str
) -> Iterator[Need]:
    """Report a database that was restored to an earlier state, and why nothing can be changed."""
    if message is not None:
        yield Need(
            rank=Rank.SET_BACK,
            state="bad",
            word="Set back",
            sentence="The cluster's database was restored to an older state",
            cause=f"{message}. Brokers keep serving their last metadata and refuse every change; "
            "they recover by themselves once the newer database is back.",
            link=link("brokers", cluster_id),
            link_text="See brokers",
        )
    if is_gone:
        yield Need(
            rank=Rank.AGENT,
            state="warn",
            word="Agent away",
            sentence="The agent of this host has ended",
            cause="Brokers keep serving their last metadata; topics and configs cannot be "
            "changed. ./samsa status says why it ended, and whether it is being started again.",
            link=link("brokers", cluster_id),
            link_text="See brokers",
        )
    elif trouble and message is None:
        yield Need(
            rank=Rank.AGENT,
            state="bad",
            word="No changes",
            sentence="The cluster cannot be changed now",
            cause=f"{_begun(trouble)}. Records are written and read as before; topics and configs"
            " cannot be changed, and a broker that ends cannot come back meanwhile.",
            link=link("brokers", cluster_id),
            link_text="See brokers",
        )


def of_topics(hurt: Leaderless, *, cluster_id: str) -> Iterator[Need]:
    """Report all partitions without a leader in one line."""
    if not hurt.partitions:
        return
    have = "partition has" if hurt.partitions == 1 else "partitions have"
    rest = hurt.topics - len(hurt.named)
    more = f" and {rest:,} more topic{'s' if rest > 1 else ''}" if rest else ""
    only = hurt.named[0] if hurt.topics == 1 and hurt.named else None
    yield Need(
        rank=Rank.NO_LEADER,
        state="bad",
        word="No leader",
        sentence=f"{hurt.partitions:,} {have} no leader",
        cause=f"In {', '.join(hurt.named)}{more}. They cannot be read or written until a broker "
        "with a replica is back.",
        link=link("topics", cluster_id, facet="leaderless")
        if only is None
        else link("topic", cluster_id, only, tab="partitions"),
        link_text="See topics" if only is None else "See the topic",
    )


def of_brokers(rows: Iterable[BrokerRow], *, cluster_id: str) -> Iterator[Need]:
    """Report brokers that are out of service, do not answer, or answer slowly."""
    for row in rows:
        state = row.state
        told = BROKER_NEEDS.get(state.word)
        if told is not None:
            rank, words, advice = told
            yield _of_broker(
                row.id,
                rank=rank,
                state=state.mark,
                word=state.word,
                sentence=f"Broker {row.id} {words}",
                cause=f"{_begun(state.cause)}{advice}",
                cluster_id=cluster_id,
            )
        elif row.loop_delay_ms is not None and row.loop_delay_ms > SLOW_LOOP_MS:
            yield _of_broker(
                row.id,
                rank=Rank.LOOP,
                state="warn",
                word="Busy",
                sentence=f"Broker {row.id} is slow to handle its requests",
                cause=f"One in a hundred waits {row.loop_delay_ms:,.0f} ms for its event loop, "
                f"above {SLOW_LOOP_MS:,.0f} ms: its core is overloaded, or one client sends too "
                "much. Its page names the clients.",
                cluster_id=cluster_id,
            )


def of_disks(rows: Iterable[BrokerRow], *, cluster_id: str) -> Iterator[Need]:
    """Report disks that are nearly full or will be soon, once for brokers that share a disk."""
    sharing: dict[tuple[str, int, int], list[BrokerRow]] = {}
    for row in rows:
        disk = row.disk
        if disk is not None:
            # An older release does not name the disk.
            named = disk.percent if disk.device is None else disk.device
            sharing.setdefault((row.host, disk.size, named), []).append(row)
    for brokers in sharing.values():
        yield from _of_disk(brokers, cluster_id=cluster_id)


def _of_disk(brokers: Sequence[BrokerRow], *, cluster_id: str) -> Iterator[Need]:
    """Report the disk that brokers of one host share, by the worst that one of them says."""
    row = min(brokers, key=_urgency)
    assert row.disk is not None, "of those that report their disk"
    share, is_full = 1 - row.disk.used, row.disk.is_full
    days = row.fullness.low_days
    is_soon = days is not None and days <= FULL_SOON_DAYS
    if share >= LOW_DISK and not is_soon:
        return
    is_now = share < NO_DISK or (days is not None and days <= FULL_NOW_DAYS)
    filling = f"At this rate it will be full {row.fullness.words}. "
    full = "It is full: brokers refuse records until there is room. "
    how = full if is_full else filling if is_soon else ""
    *others, last = (str(each.id) for each in brokers)
    whose = f"brokers {', '.join(others)} and {last}" if others else f"broker {last}"
    yield _of_broker(
        row.id,
        rank=Rank.DISK_FULL if is_now else Rank.DISK_LOW,
        state="bad" if is_now else "warn",
        word="Disk",
        sentence=f"The disk of {whose} has {quantities.size(row.disk.free)} left, {share:.0%}",
        cause=f"{how}{_filler(brokers, row)}{'' if is_full else ' A full disk takes no records.'}",
        cluster_id=cluster_id,
    )


def _urgency(row: BrokerRow) -> tuple[float, int, int]:
    assert row.disk is not None, "of those that report their disk"
    days = row.fullness.low_days
    return (math.inf if days is None else days, row.disk.free, row.id)


def _filler(brokers: Sequence[BrokerRow], row: BrokerRow) -> str:
    """Say what takes the room of a disk and what grows on it, and advise by that."""
    assert row.disk is not None, "of those that report their disk"
    if any(each.log_bytes is None for each in brokers):
        return "The use of its space is unknown."
    share = min(1.0, sum(each.log_bytes or 0 for each in brokers) / max(1, row.disk.used_bytes))
    are_logs = share >= HALF
    logs_share, rest = quantities.share(share), quantities.share(1 - share)
    words = f"Topics take {logs_share} of what is used, other data {rest}"
    fills = row.fullness.fills_per_day
    if fills is not None:
        # The logs of each broker grow for themselves, and the disk fills by all of them.
        logs = min(fills, max(0.0, sum(each.fullness.logs_per_day or 0 for each in brokers)))
        are_logs = logs >= HALF * fills
        grown, whose = (logs, "topics") if are_logs else (fills - logs, "other data")
        words += f"; {whose} grow{'' if are_logs else 's'} by some {quantities.size(grown)} a day"
    advice = (
        "Shorten retention.ms of large topics, or give it a larger disk."
        if are_logs
        else "Remove other data from this disk, or give the brokers one of their own: deleting"
        " records would free little."
    )
    return f"{words}. {advice}"


def of_collector(live: Live, *, cluster_id: str) -> Iterator[Need]:
    """Report that this page's data about brokers and groups is stale or missing."""
    if live.is_away or live.is_stale:
        yield Need(
            rank=Rank.COLLECTOR,
            state="stale",
            word="Not known" if live.is_away else "Stale",
            sentence=f"Rates, sizes and lag are {'not known' if live.is_away else 'old'}",
            cause=f"The collector reads them from the brokers: {live.reason}."
            " ./samsa status shows whether it runs; it is started again by itself.",
            link=link("brokers", cluster_id),
            link_text="See brokers",
        )
    if live.snapshot.is_cut:
        yield Need(
            rank=Rank.CUT,
            state="warn",
            word="Cut",
            sentence="The cluster exceeds the limits of the collector",
            cause="Some partitions, groups or commits are missing from these pages. Their limits"
            " are in docs/gaps.md.",
            link=link("groups", cluster_id),
            link_text="See groups",
        )


def of_groups(
    rows: Iterable[GroupRow], owners: Mapping[str, Owner], *, told_ms: int, cluster_id: str
) -> Iterator[Need]:
    """Report the worst groups by name, and the number of the others.

    The group of a connector is reported as that, unless the connector says why it lags.
    """
    hurt = [
        row
        for row in rows
        if row.verdict_value in GROUP_RANKS
        and not ((owner := owners.get(row.name)) and owner.explains_lag)
    ]
    hurt.sort(key=lambda row: (-SEVERITY[row.verdict_value], -row.lag, row.name))
    for row in hurt[:NAMED_GROUPS]:
        found = _of_group(row, told_ms=told_ms, cluster_id=cluster_id)
        owner = owners.get(row.name)
        yield found if owner is None else _of_owned(found, row, owner, told_ms=told_ms)
    more = len(hurt) - NAMED_GROUPS
    if more > 0:
        worst = MARKS[hurt[NAMED_GROUPS].verdict_value]
        yield Need(
            rank=Rank.MORE_GROUPS,
            state=worst.state,
            word="Groups",
            sentence=f"{more:,} more group{'s need' if more > 1 else ' needs'} attention",
            cause=f"The worst of them: {worst.word.lower()}. The list has them in this order.",
            link=link("groups", cluster_id),
            link_text="See groups",
        )


def of_connectors(found: Sequence[Trouble], *, cluster_id: str) -> Iterator[Need]:
    """Report the worst connectors by name, and the number of the others."""
    for trouble in found[:NAMED_CONNECTORS]:
        rank, sentence, advice = CONNECTOR_NEEDS[trouble.state]
        yield Need(
            rank=rank,
            state=trouble.mark.state,
            word=trouble.mark.word,
            sentence=sentence.format(name=shown_names.shown(trouble.name)),
            cause=f"{trouble.cause.rstrip('.')}. {advice}".strip() if trouble.cause else advice,
            link=link("connector", cluster_id, trouble.name),
            link_text="See the connector",
        )
    rest = found[NAMED_CONNECTORS:]
    if rest:
        yield Need(
            rank=Rank.MORE_CONNECTORS,
            state=rest[0].mark.state,
            word="Connectors",
            sentence=f"{len(rest):,} more connector{'s need' if len(rest) > 1 else ' needs'}"
            " attention",
            cause=f"The worst of them: {rest[0].mark.word.lower()}. The list has them first.",
            link=link("connectors", cluster_id),
            link_text="See connectors",
        )


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _of_broker(
    broker_id: int, *, rank: Rank, state: str, word: str, sentence: str, cause: str, cluster_id: str
) -> Need:
    return Need(
        rank=rank,
        state=state,
        word=word,
        sentence=sentence,
        cause=cause,
        link=link("broker", cluster_id, broker_id),
        link_text="See the broker",
    )


def _of_group(row: GroupRow, *, told_ms: int, cluster_id: str) -> Need:
    verdict = row.verdict_value
    mark = mark_of(row)
    seconds = lag_seconds(row, told_ms)
    eta = eta_words(row, seconds)
    said = (
        _waiting(row, seconds) + GROUP_CAUSES.get(verdict, ""),
        owned_words(row),
        rebalance_words(row),
        _members(row) + _forecast(eta),
    )
    return Need(
        rank=GROUP_RANKS[verdict],
        state=mark.state,
        word=mark.word,
        sentence=f"Group {shown_names.shown(row.name)} {_does(row)}",
        cause=" ".join(part.strip() for part in said if part),
        link=group_names.link(cluster_id, row.name),
        link_text="See the group",
    )


def _of_owned(group: Need, row: GroupRow, owner: Owner, *, told_ms: int) -> Need:
    """Return the need of a group as one of its connector."""
    waiting = _waiting(row, lag_seconds(row, told_ms)) + GROUP_CAUSES.get(row.verdict_value, "")
    return replace(
        group,
        sentence=f"Connector {owner.name} {GROUP_WORDS[row.verdict_value]}",
        cause=f"{waiting} {_of_tasks(owner.mark)}".strip(),
        link=owner.link,
        link_text="See the connector",
    )


def _of_tasks(mark: Mark) -> str:
    if mark is STATES[RUNNING]:
        return "Its tasks run: their log says what they do."
    return f"{mark.meaning} ./samsa status shows the workers."


def _does(row: GroupRow) -> str:
    if row.verdict_value is Verdict.STOPPED and not row.members:
        return "has no members while records wait"
    return GROUP_WORDS[row.verdict_value]


def _waiting(row: GroupRow, seconds: float | None) -> str:
    if not row.lag:
        return ""
    oldest = "" if seconds is None else f", the oldest for {durations.span(seconds)}"
    return f"{row.lag:,} record{'s wait' if row.lag != 1 else ' waits'}{oldest}."


def _members(row: GroupRow) -> str:
    if row.verdict_value is Verdict.REBALANCING:
        return "See in the logs of its members why they join and leave."
    if not row.members:
        return "It has no members: start its consumers, or reset or delete the group."
    members = f"{row.members:,} member{'s' if row.members != 1 else ''}"
    if row.verdict_value is Verdict.STOPPED:
        works = "it still works" if row.members == 1 else "they still work"
        return f"It has {members}: see in the logs whether {works}."
    return f"It has {members}."


def _forecast(eta: str) -> str:
    """Return when the group will have caught up, unless it makes no progress."""
    if not eta or eta == NOT_KNOWN:
        return ""
    return f" It {eta} at this rate." if eta.startswith("does") else f" It catches up in {eta}."
