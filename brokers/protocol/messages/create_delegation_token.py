"""CreateDelegationToken: issue a token by which others may act for a principal.
API 38, versions 1-3, flexible from 2.

Versions:
  1  a throttled answer is sent at once (KIP-219); the API is KIP-48, the oldest left by KIP-896
  2  flexible (KIP-482)
  3  a token for another owner than the requester (KIP-373)
"""

from brokers.protocol.schema import Message, array, blob, int16, int32, int64, string


class CreatableRenewers(Message):
    principal_type: str = string()
    principal_name: str = string()


class CreateDelegationTokenRequest(Message, key=38, versions=(1, 3), flexible=2):
    owner_principal_type: str | None = string("Null for the requester itself.", since=3, nullable=3)
    owner_principal_name: str | None = string("Null for the requester itself.", since=3, nullable=3)
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64("Milliseconds; -1 for the broker's limit.")


class CreateDelegationTokenResponse(Message, key=38, versions=(1, 3), flexible=2):
    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(since=3)
    token_requester_principal_name: str = string(since=3)
    issue_timestamp_ms: int = int64("Milliseconds since 1970.")
    expiry_timestamp_ms: int = int64("Milliseconds since 1970; can be put off by renewing.")
    max_timestamp_ms: int = int64("Milliseconds since 1970; renewing ends here.")
    token_id: str = string()
    hmac: bytes = blob()
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
