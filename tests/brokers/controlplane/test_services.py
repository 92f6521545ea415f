"""The write door: one transaction, one change, and the rows that say the same."""

import secrets

import pytest

from brokers.cluster.image import NO_ID, Position, ResourceType
from brokers.cluster.proposals import (
    Action,
    AllocateProducerIds,
    AlterConfigs,
    ConfigEdit,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Outcome,
    ProducerIdsResult,
    Proposal,
)
from brokers.cluster.store import Registered, Registration
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.database import project_home

project_home()

# Models can be imported only after the project is set up.
from brokers.controlplane import models, selectors, services, values  # noqa: E402
from brokers.controlplane.reading import read_all, read_news  # noqa: E402

NOW_MS = 1_700_000_000_000


def new_cluster() -> str:
    return services.ensure_cluster(name="local", now_ms=NOW_MS).cluster_id


def register(
    cluster_id: str,
    *,
    incarnation: bytes | None = None,
    broker_id: int = -1,
    highest_producer_id: int = -1,
) -> Registered:
    return services.register_broker(
        cluster_id=cluster_id,
        registration=Registration(
            incarnation=incarnation or secrets.token_bytes(16),
            host="127.0.0.1",
            port=9092,
            broker_id=broker_id,
            highest_producer_id=highest_producer_id,
        ),
        agent_id="agent-1",
        process="",
        now_ms=NOW_MS,
    )


def serving(cluster_id: str) -> Registered:
    registered = register(cluster_id)
    assert services.unfence_broker(
        cluster_id=cluster_id,
        broker_id=registered.broker_id,
        broker_epoch=registered.broker_epoch,
        now_ms=NOW_MS,
    )
    return registered


def asking(
    action: Action, broker: Registered | None = None, *, validate_only: bool = False
) -> Proposal:
    return Proposal(
        id=secrets.token_bytes(16),
        action=action,
        actor="User:alice",
        validate_only=validate_only,
        broker_id=broker.broker_id if broker else -1,
        broker_epoch=broker.broker_epoch if broker else -1,
    )


def propose(cluster_id: str, *proposals: Proposal) -> list[Outcome]:
    return services.propose(cluster_id=cluster_id, proposals=proposals, now_ms=NOW_MS)


def topic(name: str, partitions: int = 2) -> CreateTopic:
    return CreateTopic(name=name, partitions=partitions, replication_factor=1)


def test_a_registration_gives_an_id_and_the_version_as_epoch(database: str) -> None:
    cluster_id = new_cluster()

    first = register(cluster_id)
    second = register(cluster_id)

    assert (first.broker_id, first.broker_epoch, first.version) == (1, 1, 1)
    assert (second.broker_id, second.broker_epoch) == (2, 2)


def test_the_same_incarnation_keeps_its_id_and_its_epoch(database: str) -> None:
    cluster_id = new_cluster()
    first = register(cluster_id, incarnation=b"i" * 16)

    again = register(cluster_id, incarnation=b"i" * 16)
    with_id = register(cluster_id, incarnation=b"i" * 16, broker_id=first.broker_id)

    assert again == first == with_id


def test_another_incarnation_takes_the_place_under_a_higher_epoch(database: str) -> None:
    cluster_id = new_cluster()
    first = serving(cluster_id)

    second = register(cluster_id, broker_id=first.broker_id)

    row = models.Broker.objects.get()
    assert second.broker_epoch > first.broker_epoch
    assert (row.broker_id, row.epoch, row.is_fenced) == (1, second.broker_epoch, True)


def test_a_log_dir_of_another_cluster_is_refused(database: str) -> None:
    cluster_id = new_cluster()

    with pytest.raises(KafkaError) as refused:
        services.register_broker(
            cluster_id=cluster_id,
            registration=Registration(
                incarnation=bytes(16), host="h", port=1, cluster_id="another"
            ),
            agent_id="a",
            process="",
            now_ms=NOW_MS,
        )

    assert refused.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_fencing_counts_for_the_epoch_it_names_only(database: str) -> None:
    cluster_id = new_cluster()
    first = serving(cluster_id)
    second = register(cluster_id, broker_id=first.broker_id)
    before = models.Cluster.objects.get().version

    is_done = services.unfence_broker(
        cluster_id=cluster_id, broker_id=1, broker_epoch=first.broker_epoch, now_ms=NOW_MS
    )

    assert not is_done
    assert models.Cluster.objects.get().version == before
    assert models.Broker.objects.get().epoch == second.broker_epoch


def test_rows_changes_and_image_say_the_same_after_every_action(database: str) -> None:
    cluster_id = new_cluster()
    history = read_all(cluster_id=cluster_id)
    broker = serving(cluster_id)
    calls: list[list[Action]] = [
        [topic("a.b"), topic("c", 5), topic("d")],
        [CreatePartitions(name="c", count=8), DeleteTopic(name="d")],
        [
            AlterConfigs(
                resource_type=ResourceType.TOPIC,
                name="c",
                edits=(ConfigEdit(key="retention.ms", value="1000"),),
            ),
            AlterConfigs(
                resource_type=ResourceType.BROKER,
                name="",
                edits=(ConfigEdit(key="num.partitions", value="4"),),
            ),
        ],
        [DeleteTopic(name="a.b"), topic("a.b", 1)],
    ]

    outcomes = [
        outcome
        for actions in calls
        for outcome in propose(cluster_id, *(asking(action, broker) for action in actions))
    ]
    for entry in read_news(cluster_id=cluster_id, after=history.position).entries:
        history.append(entry)

    stored = values.image(models.Cluster.objects.get())
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert history.image == stored
    assert [t.name for t in stored.topics.values()] == ["a.b", "c"]
    assert len(stored.topics["c"].partitions) == 8
    assert models.Cluster.objects.get().partition_count == 9


def test_a_call_is_one_change(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)

    outcomes = propose(cluster_id, asking(topic("one"), broker), asking(topic("two"), broker))

    change = models.Change.objects.latest("version")
    assert [outcome.version for outcome in outcomes] == [change.version, change.version]
    assert change.summary == "topic created: one, two"


def test_a_refusal_in_a_call_leaves_the_others_standing(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)

    outcomes = propose(
        cluster_id,
        asking(topic("same"), broker),
        asking(topic("same"), broker),
        asking(topic("other"), broker),
    )

    assert [outcome.error for outcome in outcomes] == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.NONE,
    ]


def test_a_repeated_proposal_is_answered_as_the_first_time(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    wanted = [
        asking(topic("once"), broker),
        asking(AllocateProducerIds(), broker),
    ]
    first = propose(cluster_id, *wanted)
    propose(cluster_id, asking(DeleteTopic(name="once"), broker))

    again = propose(cluster_id, *wanted)

    assert again == first
    assert not models.Topic.objects.exists()


def test_a_proposal_twice_in_a_call_is_done_once(database: str) -> None:
    cluster_id = new_cluster()
    wanted = asking(AllocateProducerIds(), serving(cluster_id))

    before = models.ProducerIds.objects.get().next_id

    first, second = propose(cluster_id, wanted, wanted)

    assert first == second
    assert models.ProducerIds.objects.get().next_id == before + 1000


def test_blocks_of_producer_ids_never_overlap(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    start = models.ProducerIds.objects.get().next_id

    outcomes = propose(cluster_id, *(asking(AllocateProducerIds(), broker) for _ in range(3)))

    blocks = [outcome.result for outcome in outcomes]
    assert all(isinstance(block, ProducerIdsResult) for block in blocks)
    assert [block.first for block in blocks if isinstance(block, ProducerIdsResult)] == [
        start,
        start + 1000,
        start + 2000,
    ]


def test_producer_ids_of_a_new_cluster_begin_at_a_random_high_id(database: str) -> None:
    new_cluster()
    start = models.ProducerIds.objects.get().next_id

    assert 2**20 <= start < 2**60
    assert start % 2**20 == 0


def test_a_registration_moves_a_counter_that_stands_below_what_the_broker_has_seen(
    database: str,
) -> None:
    cluster_id = new_cluster()
    models.ProducerIds.objects.update(next_id=1_000)

    register(cluster_id, highest_producer_id=5_000)
    assert models.ProducerIds.objects.get().next_id == 5_001

    register(cluster_id, highest_producer_id=70)
    assert models.ProducerIds.objects.get().next_id == 5_001


def test_a_registration_with_an_impossible_producer_id_is_refused(database: str) -> None:
    cluster_id = new_cluster()
    before = models.ProducerIds.objects.get().next_id

    with pytest.raises(KafkaError, match="highest producer id 9223372036854775807") as caught:
        register(cluster_id, highest_producer_id=2**63 - 1)

    assert caught.value.code is ErrorCode.INVALID_REGISTRATION
    assert models.ProducerIds.objects.get().next_id == before


def test_validation_alone_changes_nothing(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    before = models.Cluster.objects.get().version

    (outcome,) = propose(cluster_id, asking(topic("thought"), broker, validate_only=True))

    assert outcome.error is ErrorCode.NONE
    assert models.Cluster.objects.get().version == before
    assert not models.Topic.objects.exists()
    assert not models.Proposal.objects.exists()


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(0, ErrorCode.STALE_BROKER_EPOCH), (99, ErrorCode.STALE_BROKER_EPOCH)],
)
def test_a_broker_under_another_epoch_changes_nothing(
    database: str, epoch: int, code: ErrorCode
) -> None:
    cluster_id = new_cluster()
    serving(cluster_id)
    wanted = Proposal(
        id=secrets.token_bytes(16),
        action=topic("late"),
        actor="User:alice",
        broker_id=1,
        broker_epoch=epoch,
    )

    (outcome,) = propose(cluster_id, wanted)

    assert outcome.error is code
    assert not models.Topic.objects.exists()


def test_a_fenced_broker_changes_nothing(database: str) -> None:
    cluster_id = new_cluster()
    broker = register(cluster_id)

    (outcome,) = propose(cluster_id, asking(topic("early"), broker))

    assert outcome.error is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    "action",
    [
        CreateTopic(name="a\0b"),
        DeleteTopic(name="a\0b"),
        CreatePartitions(name="x" * 100_000, count=2),
        AlterConfigs(
            resource_type=ResourceType.BROKER,
            name="1\0",
            edits=(ConfigEdit(key="log.retention.ms", value="5"),),
        ),
        AlterConfigs(
            resource_type=ResourceType.TOPIC,
            name="here",
            edits=(
                ConfigEdit(key="leader.replication.throttled.replicas", value="\0"),
                ConfigEdit(key="follower.replication.throttled.replicas", value="*\0"),
            ),
        ),
    ],
)
def test_texts_that_no_database_holds_are_refused_alone(database: str, action: Action) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    propose(cluster_id, asking(topic("here"), broker))

    refused, fine = propose(cluster_id, asking(action, broker), asking(topic("fine"), broker))

    assert refused.error
    assert not fine.error


def test_a_new_cluster_stands_at_the_position_of_nothing(database: str) -> None:
    new_cluster()

    assert values.position(models.Cluster.objects.get()) == Position(version=0, id=NO_ID)


def test_a_console_may_keep_several_clusters(database: str) -> None:
    one = services.ensure_cluster(name="one", now_ms=NOW_MS).cluster_id
    two = services.ensure_cluster(name="two", now_ms=NOW_MS).cluster_id
    first, second = serving(one), serving(two)

    propose(one, asking(topic("same"), first))
    (outcome,) = propose(two, asking(topic("same"), second))

    assert outcome.error is ErrorCode.NONE
    assert (first.broker_id, second.broker_id) == (1, 1)


def test_old_changes_and_proposals_are_pruned(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactions = "brokers.controlplane.services.transactions"
    monkeypatch.setattr(f"{transactions}.KEPT_CHANGES", 4)
    monkeypatch.setattr(f"{transactions}.PRUNE_EVERY", 4)
    cluster_id = new_cluster()
    broker = serving(cluster_id)

    for number in range(10):
        propose(cluster_id, asking(topic(f"t{number}", 1), broker))

    assert models.Cluster.objects.get().version == 12
    assert sorted(models.Change.objects.values_list("version", flat=True)) == [9, 10, 11, 12]
    assert min(models.Proposal.objects.values_list("version", flat=True)) == 9


def test_outcomes_are_bounded_though_nothing_changes(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactions = "brokers.controlplane.services.transactions"
    monkeypatch.setattr(f"{transactions}.KEPT_PROPOSALS", 4)
    monkeypatch.setattr(f"{transactions}.PRUNE_EVERY", 2)
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    before = models.Cluster.objects.get().version

    asked = [asking(AllocateProducerIds(), broker) for _ in range(20)]
    first = [propose(cluster_id, proposal) for proposal in asked]

    assert models.Cluster.objects.get().version == before
    assert models.Proposal.objects.count() <= 4 + 2
    # What was answered a moment ago is answered the same.
    assert [propose(cluster_id, proposal) for proposal in asked[-4:]] == first[-4:]


def test_deleted_topics_are_forgotten_as_images_forget_them(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.controlplane.services.transactions.MAX_DELETED", 3)
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    names = [f"t{number}" for number in range(8)]
    propose(cluster_id, *[asking(topic(name, 1), broker) for name in names])

    for some in (names[:5], names[5:6], names[6:]):
        propose(cluster_id, *[asking(DeleteTopic(name=name), broker) for name in some])

    kept = models.DeletedTopic.objects.order_by("pk").values_list("name", flat=True)
    assert list(kept) == names[-3:]


def test_changes_are_kept_by_their_weight_too(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactions = "brokers.controlplane.services.transactions"
    monkeypatch.setattr(f"{transactions}.KEPT_BYTES", 10_000)
    monkeypatch.setattr(f"{transactions}.HEAVY_BYTES", 2_000)
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    seen = read_all(cluster_id=cluster_id).position

    for number in range(10):
        propose(cluster_id, asking(topic(f"t{number}", 300), broker))

    kept = [len(encoded) for encoded in models.Change.objects.values_list("encoded", flat=True)]
    assert 1 < len(kept) < 10
    assert sum(kept) <= 10_000
    history = read_all(cluster_id=cluster_id)
    assert history.image == values.image(models.Cluster.objects.get())
    # An agent that was away reads everything anew, and does not take it for another database.
    assert read_news(cluster_id=cluster_id, after=seen).is_lost


def test_a_topic_of_many_partitions_is_several_records_of_one_change(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.cluster.change_bounds.PARTITIONS_PER_RECORD", 3)
    cluster_id = new_cluster()
    history = read_all(cluster_id=cluster_id)
    serving(cluster_id)

    (outcome,) = propose(cluster_id, asking(topic("large", 10)))
    (grown,) = propose(cluster_id, asking(CreatePartitions(name="large", count=17)))
    for entry in read_news(cluster_id=cluster_id, after=history.position).entries:
        history.append(entry)

    assert not outcome.error
    assert not grown.error
    assert len(history.image.topics["large"].partitions) == 17
    assert history.image == values.image(models.Cluster.objects.get())
    assert selectors.recent_changes(cluster_id=cluster_id)[1].summary == "topic created: large"


def test_a_call_that_is_too_much_for_one_change_is_done_as_far_as_it_goes(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.cluster.change_bounds.MAX_RECORDS", 3)
    cluster_id = new_cluster()
    serving(cluster_id)

    outcomes = propose(cluster_id, *(asking(topic(f"t{number}")) for number in range(5)))

    assert [outcome.error for outcome in outcomes] == [
        *[ErrorCode.NONE] * 3,
        *[ErrorCode.POLICY_VIOLATION] * 2,
    ]
    assert "4 records in one change, 3 are allowed: ask for less" in outcomes[3].message
    assert models.Topic.objects.count() == 3
