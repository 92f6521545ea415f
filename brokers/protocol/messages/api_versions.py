"""ApiVersions: say which requests this broker understands, in which versions.
API 18, versions 0-4, flexible from 3.

The first request of nearly every connection, allowed before authentication.  Its answer has the
old header without tagged fields in every version, so that any client can read it.  A version that
is too new for the broker is answered in the form of version 0 with UNSUPPORTED_VERSION and one
row, that of ApiVersions itself, from which the client picks its second try (KIP-511); if the broker
closed the connection instead, clients would take it for one that does not know ApiVersions.

Versions:
  0  the rows alone (KIP-35)
  1  throttle time (KIP-124)
  2  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  3  flexible (KIP-482), names of client libraries (KIP-511), features (KIP-584)
  4  features whose lowest version is 0 may be listed; below they must be left out (KAFKA-17011)
"""

from brokers.protocol.schema import Message, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message, key=18, versions=(0, 4), flexible=3):
    client_software_name: str = string(
        "Letters, digits, dots and dashes, with a letter or digit at both ends; else "
        "INVALID_REQUEST.",
        since=3,
        ignorable=True,
    )
    client_software_version: str = string(
        "The same alphabet as the name; both are for statistics only.", since=3, ignorable=True
    )


class ApiVersion(Message):
    api_key: int = int16()
    min_version: int = int16("Lowest version served; Produce says 0 though it serves from 3.")
    max_version: int = int16("Highest version served.")


class SupportedFeatureKey(Message):
    name: str = string("Name of a feature, such as transaction.version.", since=3)
    min_version: int = int16(
        "Lowest level this broker can run; a feature with 0 here is left out before version 4, "
        "since older Java clients fail on it.",
        since=3,
    )
    max_version: int = int16("Highest level this broker can run.", since=3)


class FinalizedFeatureKey(Message):
    name: str = string("Name of a feature that the cluster has settled on.", since=3)
    max_version_level: int = int16("The level in force.", since=3)
    min_version_level: int = int16("The lowest level still understood.", since=3)


class ApiVersionsResponse(Message, key=18, versions=(0, 4), flexible=3):
    error_code: int = int16(
        "UNSUPPORTED_VERSION for a version not served, INVALID_REQUEST for an illegal name of a "
        "client library."
    )
    api_keys: list[ApiVersion] = array(
        ApiVersion, "One row for each API that this listener serves, none for others."
    )
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=1,
        ignorable=True,
    )
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey,
        "The features that this broker supports.",
        since=3,
        tag=0,
        ignorable=True,
    )
    finalized_features_epoch: int = int64(
        "Grows with each change of finalized_features; -1 if not known.",
        default=-1,
        since=3,
        tag=1,
        ignorable=True,
    )
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey,
        "The features that the cluster as a whole has enabled.",
        since=3,
        tag=2,
        ignorable=True,
    )
    zk_migration_ready: bool = boolean(
        "Left over from Kafka's migration from ZooKeeper (KIP-866); always false here.",
        since=3,
        tag=3,
        ignorable=True,
    )
