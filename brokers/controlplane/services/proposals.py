"""Executes the proposals of brokers, the console and operators to change the cluster.

A call is one transaction and at most one change, whatever it contains. `brokers.cluster.decisions`
has the decisions and the texts of refusals; this module handles locks, rows and repetitions.
Locks are taken in one order: topics, brokers, configurations, the cluster's row. Brokers come after
topics because a proposal that waits for a topic must not keep its own broker from being fenced.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from brokers.cluster import change_bounds, levels, link
from brokers.cluster.changes import ConfigsChanged, Record
from brokers.cluster.decisions import MAX_PARTITIONS, decide
from brokers.cluster.effects import effects_of
from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import (
    MAX_PROPOSALS,
    Action,
    AlterConfigs,
    Outcome,
    ProducerIdsResult,
    Proposal,
)
from brokers.controlplane import models
from brokers.controlplane.database import Overtaken, transactional
from brokers.controlplane.services import audit, expectations, refusals
from brokers.controlplane.services.brokers import MAX_BROKER_ID
from brokers.controlplane.services.levels import named
from brokers.controlplane.services.transactions import append_change, prune_proposals
from brokers.controlplane.services.view import RowsView
from brokers.protocol.errors import ErrorCode, KafkaError

OPERATOR: Final = -1  # the broker id of a proposal that no broker makes


def new_topic_id() -> bytes:
    return uuid.uuid4().bytes


def propose(
    *,
    cluster_id: str,
    proposals: Sequence[Proposal],
    now_ms: int,
    topic_ids: Callable[[], bytes] = new_topic_id,
    is_whole: bool = False,
) -> list[Outcome]:
    """Execute the acceptable proposals of a call; return one outcome for each, in order.

    A call that is whole changes nothing if one of its proposals is refused. Refusals are written
    in a separate transaction, once the locks of this one are released.
    """
    assert len(proposals) <= MAX_PROPOSALS, f"{len(proposals)} proposals in one call"
    outcomes = _decided(
        cluster_id=cluster_id,
        proposals=proposals,
        now_ms=now_ms,
        topic_ids=topic_ids,
        is_whole=is_whole,
    )
    both = zip(proposals, outcomes, strict=True)
    refused = [(proposal, outcome) for proposal, outcome in both if outcome.error]
    if refused:
        refusals.note(cluster_id=cluster_id, refusals=refused, now_ms=now_ms)
    return outcomes


@transactional
def _decided(
    *,
    cluster_id: str,
    proposals: Sequence[Proposal],
    now_ms: int,
    topic_ids: Callable[[], bytes],
    is_whole: bool,
) -> list[Outcome]:
    cluster = models.Cluster.objects.get(cluster_id=cluster_id)
    known = _stored(cluster, proposals)
    fresh = [proposal for proposal in proposals if proposal.id not in known]
    call = _Call(cluster, fresh, now_ms, topic_ids)
    for proposal in fresh:
        if proposal.id not in call.outcomes:
            call.take(proposal)
    if is_whole and any(outcome.error for outcome in call.outcomes.values()):
        call.give_up()
    else:
        call.finish()
    # Another agent may have done the same while this one waited for its locks: then what is
    # refused now (the topic exists, or is gone) was accepted there.
    known |= _stored(cluster, [p for p in fresh if call.outcomes[p.id].error])
    return [known.get(p.id) or call.outcomes[p.id] for p in proposals]


class _Call:
    """The processing of a call's proposals in one transaction."""

    def __init__(
        self,
        cluster: models.Cluster,
        proposals: Sequence[Proposal],
        now_ms: int,
        topic_ids: Callable[[], bytes],
    ) -> None:
        self.outcomes: dict[bytes, Outcome] = {}
        self._cluster = cluster
        self._partitions_before = cluster.partition_count
        self._now_ms = now_ms
        self._topic_ids = topic_ids
        actions = [proposal.action for proposal in proposals]
        self._view = RowsView(cluster, actions)
        self._brokers = _locked_brokers(cluster, proposals)
        self._view.lock_configs(actions)
        # Compared before anything is decided: the call's own changes do not count.
        self._moved = {
            expects: expectations.moved(cluster, expects)
            for expects in {proposal.expects for proposal in proposals}
        }
        self._records: list[Record] = []
        # Records and bytes of the change so far.
        self._size = (0, 0)
        self._actors: dict[str, None] = {}
        self._accepted: list[bytes] = []
        self._audited: list[audit.Draft] = []

    def take(self, proposal: Proposal) -> None:
        try:
            _check_proposer(proposal, self._brokers)
            self._check_level(proposal)
            if moved := self._moved[proposal.expects]:
                raise expectations.outdated(self._cluster, moved)
            decision = decide(
                self._view, proposal.action, now_ms=self._now_ms, new_topic_id=self._topic_ids
            )
            _check_texts(decision.records)
            size = self._size_with(decision.records)
        except KafkaError as refusal:
            self.outcomes[proposal.id] = Outcome(error=refusal.code, message=refusal.message)
            return
        self.outcomes[proposal.id] = Outcome(result=decision.result)
        if proposal.validate_only:
            return
        self._size = size
        self._accepted.append(proposal.id)
        self._actors[proposal.actor] = None
        self._records += decision.records
        effects = effects_of(self._view, decision.records)
        self._audited += [audit.accepted(proposal, effect) for effect in effects]
        self._view.follow(decision.records)
        if isinstance(decision.result, ProducerIdsResult):
            taken = decision.result.first + decision.result.count
            models.ProducerIds.objects.filter(cluster=self._cluster).update(next_id=taken)

    def finish(self) -> None:
        """Write the decided records, and the outcomes for repeated proposals."""
        if self._records:
            append_change(
                self._cluster,
                lambda _version: self._records,
                actor=", ".join(self._actors),
                now_ms=self._now_ms,
            )
            self._check_room()
            audit.append(
                self._cluster, self._audited, version=self._cluster.version, now_ms=self._now_ms
            )
        version = self._cluster.version
        self.outcomes = {
            key: replace(outcome, version=version) for key, outcome in self.outcomes.items()
        }
        rows = models.Proposal.objects.bulk_create(
            [
                models.Proposal(
                    cluster=self._cluster,
                    proposal_id=key,
                    outcome=_encoded(self.outcomes[key]),
                    version=version,
                )
                for key in self._accepted
            ]
        )
        prune_proposals([row.pk for row in rows])

    def give_up(self) -> None:
        """Write nothing, since one of the proposals was refused; the other outcomes say so."""
        not_done = Outcome(
            error=ErrorCode.OPERATION_NOT_ATTEMPTED,
            message="another step of the same plan was refused, so nothing was changed",
        )
        self.outcomes = {
            key: replace(outcome if outcome.error else not_done, version=self._cluster.version)
            for key, outcome in self.outcomes.items()
        }

    def _check_level(self, proposal: Proposal) -> None:
        level = self._cluster.metadata_level
        try:
            levels.check_action(proposal.action, level)
            if proposal.expects:
                levels.check_expects(level)
        except levels.LevelTooLow as refusal:
            raise named(self._cluster, refusal) from refusal

    def _size_with(self, records: Iterable[Record]) -> tuple[int, int]:
        """Return the size of the change with these records; refuse them if it is too large."""
        parts = list(change_bounds.split(records))
        count, size = self._size
        size_with = count + len(parts), size + sum(map(change_bounds.weight, parts))
        change_bounds.check(*size_with)
        return size_with

    def _check_room(self) -> None:
        """Restart if others used up the same room before this call locked the cluster's row."""
        decided = self._view.partition_count()
        by_others = self._cluster.partition_count - self._partitions_before
        if decided <= MAX_PARTITIONS < decided + by_others:
            raise Overtaken


def _locked_brokers(
    cluster: models.Cluster, proposals: Sequence[Proposal]
) -> Mapping[int, models.Broker]:
    """Lock the proposing broker, and those with edited configs, which may have no row yet."""
    ids = {proposal.broker_id for proposal in proposals} - {OPERATOR}
    ids |= set(_brokers_edited(proposal.action for proposal in proposals))
    for expects in {proposal.expects for proposal in proposals}:
        ids |= set(expectations.brokers_expected(expects))
    rows = cluster.brokers.select_for_update().filter(broker_id__in=ids).order_by("broker_id")
    return {row.broker_id: row for row in rows}


def _brokers_edited(actions: Iterable[Action]) -> Iterator[int]:
    for action in actions:
        if isinstance(action, AlterConfigs) and action.resource_type is ResourceType.BROKER:
            name = action.name
            # The decision refuses other names; an id has at most ten digits.
            if name.isascii() and name.isdigit() and len(name) <= 10:
                yield min(int(name), MAX_BROKER_ID)


def _check_proposer(proposal: Proposal, brokers: Mapping[int, models.Broker]) -> None:
    """Refuse a broker that was replaced or fenced since it proposed; operators need no epoch."""
    if proposal.broker_id == OPERATOR:
        return
    row = brokers.get(proposal.broker_id)
    if row is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {proposal.broker_id} is not registered"
        )
    if row.epoch != proposal.broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {row.broker_id} has epoch {row.epoch}, the proposal says "
            f"{proposal.broker_epoch}",
        )
    if row.is_fenced:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {row.broker_id} is fenced until it has caught up with the cluster",
        )


def _check_texts(records: Iterable[Record]) -> None:
    """Refuse, on every database, texts that PostgreSQL cannot store: a cluster may move to it."""
    for record in records:
        if isinstance(record, ConfigsChanged):
            for key, value in record.configs:
                if "\0" in value:
                    raise KafkaError(
                        ErrorCode.INVALID_CONFIG,
                        f"the value of {key} holds a NUL character, which no value may",
                    )


def _stored(cluster: models.Cluster, proposals: Iterable[Proposal]) -> dict[bytes, Outcome]:
    ids = [proposal.id for proposal in proposals]
    rows = cluster.proposals.filter(proposal_id__in=ids) if ids else ()
    return {bytes(row.proposal_id): _decoded(bytes(row.outcome)) for row in rows}


def _encoded(outcome: Outcome) -> bytes:
    return link.encode(link.Outcomes(request_no=0, outcomes=(outcome,)))


def _decoded(frame: bytes) -> Outcome:
    message = link.decode_from_agent(frame[link.LENGTH.size :])
    assert isinstance(message, link.Outcomes), "a proposal's row holds its outcome"
    return message.outcomes[0]
