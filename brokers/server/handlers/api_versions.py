"""ApiVersions: lists the requests that are served here.

Uses the rows by which requests are dispatched, so that the list matches them. Features of the
cluster are announced by the release that serves them: a client that reads a level of
transaction.version or group.version begins to use it at once. Their levels are part of a release
and not of the cluster's metadata, so every feature is finalized, and none can be downgraded.
"""

import re
from collections.abc import Sequence
from typing import Final

from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=18)

# Name, lowest and highest level of each feature that this release serves; the highest is finalized.
FEATURES: Final[tuple[tuple[str, int, int], ...]] = (
    # 1 is the consumer protocol (KIP-848).
    ("group.version", 0, 1),
)
# Grows with each change of a level; levels do not change while brokers run.
_FEATURES_EPOCH: Final = 0

_NAMES_SINCE: Final = 3  # the first version in which a client names its software
_ZERO_SINCE: Final = 4  # the first version that may carry a lowest level of 0
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


def handle(context: Context, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse | None:
    """Answer; a request of a version that is too new to be decoded comes empty."""
    own = context.apis[SERVED.key]
    if not own.serves(call.version):
        # Clients read this in the form of version 0 and pick a version from the one row (KIP-511).
        row = ApiVersion(api_key=own.key, min_version=own.versions[0], max_version=own.versions[1])
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row])
    if call.version >= _NAMES_SINCE:
        if not _names_itself(request):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        call.introduce(request.client_software_name, request.client_software_version)
    encoded = context.encoded_versions.get(call.version)
    if encoded is None:
        # Every connection begins with this request, and the response never changes.
        encoded = codec(ApiVersionsResponse, call.version).encode(_table(context, call.version))
        context.encoded_versions[call.version] = encoded
    call.answer_encoded(encoded)
    return None


def _table(context: Context, version: int) -> ApiVersionsResponse:
    rows = [
        ApiVersion(api_key=api.key, min_version=api.advertised[0], max_version=api.advertised[1])
        for api in sorted(context.apis.values(), key=lambda api: api.key)
    ]
    return ApiVersionsResponse(
        api_keys=rows,
        supported_features=supported_features(FEATURES, version),
        finalized_features_epoch=_FEATURES_EPOCH,
        finalized_features=finalized_features(FEATURES),
    )


def supported_features(
    features: Sequence[tuple[str, int, int]], version: int
) -> list[SupportedFeatureKey]:
    """Return the features for clients of this version: Java's fail on a lowest level of 0."""
    return [
        SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
        for name, lowest, highest in features
        if lowest > 0 or version >= _ZERO_SINCE
    ]


def finalized_features(features: Sequence[tuple[str, int, int]]) -> list[FinalizedFeatureKey]:
    """Return the features at the one level in effect; features at level 0 would be left out."""
    return [
        FinalizedFeatureKey(name=name, min_version_level=highest, max_version_level=highest)
        for name, _lowest, highest in features
    ]


def _names_itself(request: ApiVersionsRequest) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(_LEGAL_NAME.fullmatch(name) for name in names)
