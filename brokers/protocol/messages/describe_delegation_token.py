"""DescribeDelegationToken: list the delegation tokens that the principal may see.
API 41, versions 1-3, flexible from 2.

Versions:
  1  a throttled answer is sent at once (KIP-219); the API is KIP-48, the oldest left by KIP-896
  2  flexible (KIP-482)
  3  who asked for the token, where that is not its owner (KIP-373)
"""

from brokers.protocol.schema import Message, array, blob, int16, int32, int64, string


class DescribeDelegationTokenOwner(Message):
    principal_type: str = string()
    principal_name: str = string()


class DescribeDelegationTokenRequest(Message, key=41, versions=(1, 3), flexible=2):
    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, "Null for the tokens of all owners.", nullable=0
    )


class DescribedDelegationTokenRenewer(Message):
    principal_type: str = string()
    principal_name: str = string()


class DescribedDelegationToken(Message):
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(since=3)
    token_requester_principal_name: str = string(since=3)
    issue_timestamp: int = int64("Milliseconds since 1970.")
    expiry_timestamp: int = int64("Milliseconds since 1970; can be put off by renewing.")
    max_timestamp: int = int64("Milliseconds since 1970; renewing ends here.")
    token_id: str = string()
    hmac: bytes = blob()
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


class DescribeDelegationTokenResponse(Message, key=41, versions=(1, 3), flexible=2):
    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
