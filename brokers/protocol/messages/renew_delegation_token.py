"""RenewDelegationToken: put off the expiry of a delegation token.
API 39, versions 1-2, flexible from 2.

Versions:
  1  a throttled answer is sent at once (KIP-219); the API is KIP-48, the oldest left by KIP-896
  2  flexible (KIP-482)
"""

from brokers.protocol.schema import Message, blob, int16, int32, int64


class RenewDelegationTokenRequest(Message, key=39, versions=(1, 2), flexible=2):
    hmac: bytes = blob()
    renew_period_ms: int = int64("Milliseconds from now; -1 for the broker's default.")


class RenewDelegationTokenResponse(Message, key=39, versions=(1, 2), flexible=2):
    error_code: int = int16()
    expiry_timestamp_ms: int = int64("Milliseconds since 1970.")
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
