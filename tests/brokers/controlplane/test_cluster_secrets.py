"""The secrets of a cluster: made once, rotated one step at a time, shown to nobody."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.database import project_home, sqlite_databases

project_home()

# Models can be imported only after the project is set up.
from brokers.controlplane import models, services  # noqa: E402
from brokers.controlplane.cluster_secrets import ACTIVATION_MS, keys  # noqa: E402
from brokers.security.cluster_keys import Purpose  # noqa: E402

NOW_MS = 1_700_000_000_000
LATER_MS = NOW_MS + ACTIVATION_MS


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[None]:
    with sqlite_databases(tmp_path):
        yield


on_sqlite = pytest.mark.usefixtures("sqlite")
on_both = pytest.mark.usefixtures("database")


def cluster() -> models.Cluster:
    return services.ensure_cluster(name="local", now_ms=NOW_MS)


def numbers(cluster_id: str, now_ms: int, purpose: Purpose = Purpose.SESSION) -> list[str]:
    """The numbers of the valid keys, the one in use first."""
    return [key.partition(".")[0] for key in keys(cluster_id=cluster_id, now_ms=now_ms)[purpose]]


def rotate(now_ms: int, purpose: Purpose = Purpose.SESSION) -> int:
    return services.rotate_secret(name="local", purpose=purpose, now_ms=now_ms)


@on_sqlite
def test_a_new_cluster_has_one_key_for_each_purpose() -> None:
    made = keys(cluster_id=cluster().cluster_id, now_ms=NOW_MS)

    assert set(made) == set(Purpose)
    assert all(len(each) == 1 for each in made.values())
    assert len({each[0] for each in made.values()}) == len(Purpose)


@on_sqlite
def test_every_host_derives_the_same_keys() -> None:
    first = keys(cluster_id=cluster().cluster_id, now_ms=NOW_MS)

    second = keys(cluster_id=cluster().cluster_id, now_ms=NOW_MS + 5)

    assert first == second


@on_both
def test_a_cluster_of_an_earlier_release_gets_what_it_lacks() -> None:
    row = cluster()
    row.secrets.exclude(purpose="session").delete()
    kept = keys(cluster_id=row.cluster_id, now_ms=NOW_MS)[Purpose.SESSION]

    cluster()

    made = keys(cluster_id=row.cluster_id, now_ms=NOW_MS)
    assert made[Purpose.SESSION] == kept
    assert all(made.values())


@on_sqlite
def test_a_new_key_is_accepted_at_once_and_used_when_all_hosts_have_it() -> None:
    cluster_id = cluster().cluster_id
    rotate(NOW_MS)

    orders = [numbers(cluster_id, NOW_MS + ms) for ms in (0, ACTIVATION_MS - 1, ACTIVATION_MS)]

    assert orders == [["1", "2"], ["1", "2"], ["2", "1"]]


@on_both
def test_the_next_rotation_ends_the_key_before_the_last() -> None:
    cluster_id = cluster().cluster_id
    rotate(NOW_MS)
    rotate(LATER_MS)

    assert numbers(cluster_id, LATER_MS) == ["2", "3"]
    assert models.ClusterSecret.objects.filter(purpose="session").count() == 2


@on_sqlite
def test_a_purpose_is_rotated_alone() -> None:
    cluster_id = cluster().cluster_id
    rotate(NOW_MS, Purpose.INSPECTION)

    assert numbers(cluster_id, LATER_MS) == ["1"]


@on_sqlite
def test_a_rotation_that_would_end_the_key_in_use_is_refused_by_its_time() -> None:
    cluster_id = cluster().cluster_id
    rotate(NOW_MS)

    with pytest.raises(services.RotationRefused, match=r"12 s ago.* again in 18 s"):
        rotate(NOW_MS + 12_000)

    assert numbers(cluster_id, NOW_MS + 12_000) == ["1", "2"]


@on_sqlite
def test_a_cluster_that_is_not_there_is_refused_with_those_that_are() -> None:
    cluster()

    with pytest.raises(services.RotationRefused, match="no cluster 'other': give one of local"):
        services.rotate_secret(name="other", purpose=Purpose.PEER, now_ms=NOW_MS)


@on_sqlite
def test_a_secret_is_in_no_change_and_in_no_name_of_its_row() -> None:
    row = cluster()
    rotate(NOW_MS)

    shown = " ".join(f"{secret} {secret!r}" for secret in row.secrets.all())

    assert not models.Change.objects.exists()
    assert all(bytes(secret.value).hex() not in shown for secret in row.secrets.all())
    assert "session 2" in shown


@on_sqlite
def test_the_command_rotates_and_shows_no_key() -> None:
    cluster_id = cluster().cluster_id
    told = io.StringIO()

    call_command("rotate_secret", purpose="inspection", stdout=told)

    assert "inspection: key 2 is valid, and in use after 30 s" in told.getvalue()
    later = LATER_MS + 10**12
    for key in keys(cluster_id=cluster_id, now_ms=later)[Purpose.INSPECTION]:
        assert key.partition(".")[2] not in told.getvalue()


@on_sqlite
def test_the_command_rotates_all_purposes_at_once() -> None:
    cluster_id = cluster().cluster_id

    call_command("rotate_secret", purpose="all", stdout=io.StringIO())

    later = LATER_MS + 10**12
    assert all(numbers(cluster_id, later, purpose) == ["2", "1"] for purpose in Purpose)


@on_sqlite
def test_the_command_refuses_in_one_sentence() -> None:
    with pytest.raises(CommandError, match="start the home once"):
        call_command("rotate_secret", purpose="peer", stdout=io.StringIO())
