"""Transforms in their order, and predicates."""

import pytest

from connectors.runtime import chain
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Header
from tests.builders.connect_values import record

PACKAGE = "org.apache.kafka.connect.transforms"


def test_transforms_run_in_the_order_of_the_list() -> None:
    made = chain.make(
        {
            "transforms": "first, second",
            "transforms.first.type": f"{PACKAGE}.HoistField$Value",
            "transforms.first.field": "inner",
            "transforms.second.type": "HoistField$Value",
            "transforms.second.field": "outer",
        }
    )

    found = made.apply(record(5))

    assert found is not None
    assert found.value == {"outer": {"inner": 5}}


def test_a_predicate_says_which_records_are_transformed() -> None:
    config = {
        "transforms": "drop",
        "transforms.drop.type": "Filter",
        "transforms.drop.predicate": "marked",
        "predicates": "marked",
        "predicates.marked.type": f"{PACKAGE}.predicates.HasHeaderKey",
        "predicates.marked.name": "skip",
    }
    marked = record(1, headers=(Header(name="skip", value=1),))

    assert chain.make(config).apply(marked) is None
    assert chain.make(config).apply(record(1)) == record(1)
    negated = chain.make({**config, "transforms.drop.negate": "true"})
    assert negated.apply(marked) == marked
    assert negated.apply(record(1)) is None


def test_topics_and_tombstones_can_be_told_apart() -> None:
    def dropped(**predicate: str) -> chain.Chain:
        keys = {f"predicates.p.{name}": text for name, text in predicate.items()}
        step = {"transforms.d.type": "Filter", "transforms.d.predicate": "p"}
        return chain.make({"transforms": "d", "predicates": "p", **step, **keys})

    by_topic = dropped(type="TopicNameMatches", pattern="ord.*")
    assert by_topic.apply(record(1)) is None
    assert by_topic.apply(record(1, topic="my-orders")) is not None
    tombstones = dropped(type="RecordIsTombstone")
    assert tombstones.apply(record(None)) is None
    assert tombstones.apply(record(0)) is not None


def test_a_record_that_fails_names_the_transform() -> None:
    made = chain.make(
        {
            "transforms": "flat",
            "transforms.flat.type": "Flatten$Value",
        }
    )

    with pytest.raises(DataError, match=r"transform flat \(.*Flatten\$Value\): Only Map") as found:
        made.apply(record("text"))
    assert isinstance(found.value, chain.TransformFailed)
    assert found.value.class_name == f"{PACKAGE}.Flatten$Value"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"transforms": "a"}, r"transforms\.a\.type is not set: there are Cast\$Key"),
        ({"transforms": "a", "transforms.a.type": "os.system"}, "is os.system, which is not one"),
        ({"transforms": "a,a"}, "has the name a twice"),
        ({"transforms": ",".join(f"t{n}" for n in range(101))}, "has 101 names, and 100 are"),
        (
            {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"},
            r"transforms\.a\.predicate is p, and predicates names none",
        ),
        (
            {"transforms": "a", "transforms.a.type": "HoistField$Key"},
            'transforms.a: Missing required configuration "field"',
        ),
        (
            {"transforms": "a", "transforms.a.type": "RegexRouter", "transforms.a.regex": "("},
            "Must be a valid regular expression",
        ),
    ],
)
def test_a_config_that_cannot_work_is_refused(config: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        chain.make(config)


def test_the_keys_of_transforms_and_predicates_are_told() -> None:
    found = chain.definition(
        {
            "transforms": "a",
            "transforms.a.type": "HoistField$Value",
            "predicates": "p",
            "predicates.p.type": "TopicNameMatches",
        }
    )

    assert [key.name for key in found] == [
        "transforms.a.type",
        "transforms.a.field",
        "transforms.a.predicate",
        "transforms.a.negate",
        "predicates.p.type",
        "predicates.p.pattern",
    ]


def test_a_chain_without_transforms_returns_the_record() -> None:
    same = record(1)

    assert chain.make({}).apply(same) is same
