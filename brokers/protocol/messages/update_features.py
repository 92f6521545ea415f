"""UpdateFeatures: raise or lower the feature levels that the cluster has settled on.
API 57, versions 0-2, flexible from 0.

Versions:
  0  (KIP-584)
  1  validate_only, and upgrade_type in place of allow_downgrade (KIP-778)
  2  all or nothing: one error for the whole request (KIP-1022)
"""

from brokers.protocol.schema import Message, array, boolean, int8, int16, int32, string


class FeatureUpdateKey(Message):
    feature: str = string()
    max_version_level: int = int16("The level wanted; 0 switches the feature off.")
    allow_downgrade: bool = boolean(until=0)
    upgrade_type: int = int8("1 upgrade, 2 safe downgrade, 3 unsafe downgrade.", default=1, since=1)


class UpdateFeaturesRequest(Message, key=57, versions=(0, 2), flexible=0):
    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(since=1)


class UpdatableFeatureResult(Message):
    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )


class UpdateFeaturesResponse(Message, key=57, versions=(0, 2), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, until=1, ignorable=True)
