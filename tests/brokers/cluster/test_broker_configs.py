"""The table of brokers' keys: what can be set while they run, for one or for all."""

from pathlib import Path

import pytest

from brokers.cluster import foreign_configs, idle_configs, topic_configs
from brokers.cluster.broker_configs import ROWS, check, check_together, defaults
from brokers.cluster.config_values import LIVE, ConfigRow, ConfigType
from brokers.protocol.errors import ErrorCode, KafkaError

GAPS = Path(__file__).parents[3] / "docs" / "gaps.md"


def refusal(key: str, value: str, *, is_default: bool = True) -> str:
    with pytest.raises(KafkaError) as refused:
        check(key, value, is_default=is_default)
    # Kafka's code for brokers, where topics have INVALID_CONFIG.
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    return refused.value.message


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_every_key_has_a_sentence_and_a_default_that_it_takes(row: object) -> None:
    assert isinstance(row, type(ROWS["node.id"]))

    assert row.sentence.endswith(".")
    if row.default is not None:
        assert row.wrong(row.default) is None


def test_defaults_of_topics_can_be_set_where_they_have_an_effect() -> None:
    for topic_row in topic_configs.ROWS.values():
        if topic_row.is_hidden:
            continue
        for synonym in topic_row.synonyms:
            is_settable = synonym.is_dynamic and topic_row.effect == LIVE
            assert ROWS[synonym.key].is_dynamic is is_settable


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.retention.ms", "5"),
        ("message.max.bytes", "1000"),
        ("min.insync.replicas", "2"),
        ("log.cleanup.policy", "compact"),
        ("num.partitions", "3"),
        ("default.replication.factor", "1"),
        ("compression.type", "gzip"),
        ("max.connections", "10000"),
        ("log.cleaner.backoff.ms", "0"),
        # Without effect, as docs/gaps.md says.
        ("num.io.threads", "16"),
        ("leader.replication.throttled.rate", "10485760"),
        # Kafka takes any name that it does not know.
        ("no.such.key", "1"),
    ],
)
def test_keys_with_effect_are_set_for_all_brokers(key: str, value: str) -> None:
    check(key, value, is_default=True)


def test_a_broker_may_differ_but_in_what_holds_for_the_cluster() -> None:
    check("log.retention.ms", "5", is_default=False)

    assert "whole cluster" in refusal("num.partitions", "3", is_default=False)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("broker.session.timeout.ms", "9000", "at their start"),
        ("cordoned.log.dirs", "*", "one log dir"),
        ("sasl.jaas.config", "x", "neither authenticate"),
        ("listener.name.internal.ssl.keystore.location", "/x", "neither authenticate"),
        ("metric.reporters", "x", "inspection port"),
        ("num.io.threads", "0", "below 1"),
        ("x" * 300, "1", "300 characters"),
        ("unknown.key", "x" * 2000, "2000 characters"),
        ("log.dirs", "/tmp", "at the start of a broker"),  # noqa: S108 - nothing is written there
        ("log.retention.hours", "2", "at the start of a broker"),
        ("log.retention.ms", "soon", "whole number"),
        ("default.replication.factor", "3", "no effect"),
        ("compression.type", "brotli", "not one of uncompressed"),
    ],
)
def test_other_keys_are_refused_with_the_reason(key: str, value: str, reason: str) -> None:
    assert reason in refusal(key, value)


# Those that a broker of Apache Kafka 4.3.0 lists as not read-only, or accepts without listing them.
DYNAMIC = """
background.threads compression.gzip.level compression.lz4.level compression.type
compression.zstd.level config.providers cordoned.log.dirs follower.fetch.last.tiered.offset.enable
follower.replication.throttled.rate group.consumer.assignment.interval.ms
group.coordinator.cached.buffer.max.bytes group.share.assignment.interval.ms
group.streams.assignment.interval.ms leader.replication.throttled.rate
listener.security.protocol.map listeners log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size
log.cleaner.delete.retention.ms log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms
log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleaner.threads
log.cleanup.policy log.flush.interval.messages log.flush.interval.ms log.index.interval.bytes
log.index.size.max.bytes log.local.retention.bytes log.local.retention.ms
log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms log.message.timestamp.type
log.preallocate log.retention.bytes log.retention.ms log.roll.jitter.ms log.roll.ms
log.segment.bytes log.segment.delete.delay.ms max.connection.creation.rate max.connections
max.connections.per.ip max.connections.per.ip.overrides message.max.bytes metric.reporters
min.insync.replicas num.io.threads num.network.threads num.recovery.threads.per.data.dir
num.replica.fetchers principal.builder.class producer.id.expiration.ms remote.fetch.max.wait.ms
remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
remote.log.manager.follower.thread.pool.size remote.log.reader.threads
replica.alter.log.dirs.io.max.bytes.per.second sasl.enabled.mechanisms sasl.jaas.config
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.mechanism.inter.broker.protocol share.coordinator.cached.buffer.max.bytes ssl.cipher.suites
ssl.client.auth ssl.enabled.protocols ssl.endpoint.identification.algorithm
ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain
ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol
ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
ssl.truststore.certificates ssl.truststore.location ssl.truststore.password ssl.truststore.type
transaction.partition.verification.enable unclean.leader.election.enable
""".split()  # noqa: SIM905 - as a list they would take a hundred lines


@pytest.mark.parametrize("key", DYNAMIC)
def test_every_dynamic_config_of_kafka_has_its_effect_or_is_refused_by_name(key: str) -> None:
    row = ROWS.get(key)

    if row is None:
        assert key in refusal(key, "x")
    elif row.is_dynamic:
        assert row.default is None or row.wrong(row.default) is None
        assert row.is_idle is (row.effect != LIVE)
    else:
        assert key in refusal(key, _other(row))


def _other(row: ConfigRow) -> str:
    return {ConfigType.BOOLEAN: "true", ConfigType.LIST: "x", ConfigType.STRING: "x"}.get(
        row.type, "1234567"
    )


def test_no_key_of_kafka_is_taken_for_an_unknown_one() -> None:
    assert not foreign_configs.STATIC_KEYS & ROWS.keys()
    assert not foreign_configs.STATIC_KEYS.intersection(DYNAMIC)


def test_unknown_keys_are_kept_up_to_a_number() -> None:
    many = {f"unknown.{number}": "1" for number in range(foreign_configs.MAX_UNKNOWN)}

    check_together(many)

    with pytest.raises(KafkaError, match="101 unknown configs"):
        check_together({**many, "one.more": "1"})


def test_the_page_of_gaps_has_the_keys_without_effect() -> None:
    page = GAPS.read_text(encoding="utf-8")
    begin, end = idle_configs.BEGIN_MARK, idle_configs.END_MARK
    _, _, rest = page.partition(begin)

    assert begin + rest.partition(end)[0] + end + "\n" == idle_configs.table_of_gaps(), (
        f"print it with: python -m {idle_configs.__name__}"
    )


def test_the_nearest_layer_wins() -> None:
    assert defaults({"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "2"}, {"c": "3"}) == {
        "a": "1",
        "b": "2",
        "c": "3",
    }
