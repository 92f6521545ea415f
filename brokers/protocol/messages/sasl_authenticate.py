"""SaslAuthenticate: carry one step of the SASL exchange.
API 36, versions 0-2, flexible from 2.

Repeated until the mechanism is done; the last answer without error opens the connection to all
other requests.  Failure is SASL_AUTHENTICATION_FAILED, then the connection closes.  A session that
is about to end is renewed in place by a new SaslHandshake and the same principal (KIP-368).

Versions:
  0  (KIP-152)
  1  session_lifetime_ms (KIP-368)
  2  flexible (KIP-482)
"""

from brokers.protocol.schema import Message, blob, int16, int64, string


class SaslAuthenticateRequest(Message, key=36, versions=(0, 2), flexible=2):
    auth_bytes: bytes = blob("The client's token, as the mechanism defines it.")


class SaslAuthenticateResponse(Message, key=36, versions=(0, 2), flexible=2):
    error_code: int = int16("SASL_AUTHENTICATION_FAILED, or ILLEGAL_SASL_STATE out of turn.")
    error_message: str | None = string(
        "Says no more than the client may know; null on success.", nullable=0
    )
    auth_bytes: bytes = blob("The broker's token; empty on error.")
    session_lifetime_ms: int = int64(
        "The client must authenticate again within this time; 0 for never.", since=1, ignorable=True
    )
