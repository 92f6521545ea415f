"""Makes and rotates the secrets of a cluster."""

import secrets

from brokers.controlplane import models
from brokers.controlplane.cluster_secrets import ACTIVATION_MS, VALID_KEYS
from brokers.controlplane.database import transactional
from brokers.security.cluster_keys import SECRET_BYTES, Purpose


class RotationRefused(Exception):
    """The secret was not rotated; the text says why, and what to do."""


def add_missing(cluster: models.Cluster, *, now_ms: int) -> None:
    """Make the first secret of each purpose that has none; part of its caller's transaction."""
    there = set(cluster.secrets.values_list("purpose", flat=True))
    for purpose in Purpose:
        if purpose.value not in there:
            _add(cluster, purpose, key_id=1, now_ms=now_ms)


@transactional
def rotate_secret(*, name: str, purpose: Purpose, now_ms: int) -> int:
    """Add a secret to those of a purpose and drop the oldest; return the number of the new key."""
    cluster = models.Cluster.objects.select_for_update().filter(name=name).first()
    if cluster is None:
        names = ", ".join(models.Cluster.objects.order_by("name").values_list("name", flat=True))
        raise RotationRefused(
            f"there is no cluster {name!r}: "
            + (f"give one of {names}" if names else "start the home once, which makes one")
        )
    rows = cluster.secrets.filter(purpose=purpose.value)
    newest = rows.order_by("-key_id").first()
    key_id = 1 if newest is None else newest.key_id + 1
    left_ms = 0 if newest is None else newest.created_at_ms + ACTIVATION_MS - now_ms
    if 0 < left_ms <= ACTIVATION_MS and key_id > VALID_KEYS:
        raise RotationRefused(
            f"{purpose.value} was rotated {(ACTIVATION_MS - left_ms) // 1000} s ago, and its key"
            f" {key_id - 1} is not in use yet: rotate it again in {-(-left_ms // 1000)} s"
        )
    _add(cluster, purpose, key_id=key_id, now_ms=now_ms)
    rows.filter(key_id__lte=key_id - VALID_KEYS).delete()
    return key_id


def _add(cluster: models.Cluster, purpose: Purpose, *, key_id: int, now_ms: int) -> None:
    models.ClusterSecret.objects.create(
        cluster=cluster,
        purpose=purpose.value,
        key_id=key_id,
        value=secrets.token_bytes(SECRET_BYTES),
        created_at_ms=now_ms,
    )
