"""Settings, and the table of numbers from which they come."""

from dataclasses import fields

import pytest

from brokers.cluster import broker_configs
from brokers.coordination.groups.settings import KEYS, GroupSettings, MigrationPolicy


def told(key: str) -> int:
    """Kafka's defaults, as brokers show them."""
    row = broker_configs.ROWS[key]
    assert row.default is not None
    return int(row.default)


def test_missing_setting_has_kafkas_default() -> None:
    assert GroupSettings.from_numbers(told) == GroupSettings()


def test_every_number_of_the_settings_is_in_the_table() -> None:
    names = {field.name for field in fields(GroupSettings)}
    assert names == {*KEYS, "migration_policy"}


def test_every_number_reaches_the_field_of_its_key() -> None:
    numbers = {key: number for number, key in enumerate(KEYS.values())}
    settings = GroupSettings.from_numbers(numbers.__getitem__)
    assert {key: getattr(settings, name) for name, key in KEYS.items()} == numbers


def test_retention_is_set_in_minutes_and_used_in_milliseconds() -> None:
    assert GroupSettings(offsets_retention_minutes=2).offsets_retention_ms == 120_000


@pytest.mark.parametrize(
    ("policy", "up", "down"),
    [
        (MigrationPolicy.DISABLED, False, False),
        (MigrationPolicy.UPGRADE, True, False),
        (MigrationPolicy.DOWNGRADE, False, True),
        (MigrationPolicy.BIDIRECTIONAL, True, True),
    ],
)
def test_a_policy_says_which_way_a_group_may_change(
    policy: MigrationPolicy, *, up: bool, down: bool
) -> None:
    assert (policy.allows_upgrade, policy.allows_downgrade) == (up, down)
