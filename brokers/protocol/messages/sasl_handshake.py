"""SaslHandshake: choose the SASL mechanism of a connection.
API 17, versions 0-1, never flexible.

Allowed, with ApiVersions, before authentication; the exchange that follows depends on the
version.  Out of turn it is ILLEGAL_SASL_STATE.

Versions:
  0  raw tokens follow, each only with its length in front
  1  SaslAuthenticate requests follow (KIP-152)
"""

from brokers.protocol.schema import STRING, Message, array, int16, string


class SaslHandshakeRequest(Message, key=17, versions=(0, 1)):
    mechanism: str = string(
        "Such as PLAIN or SCRAM-SHA-512; one not switched on is UNSUPPORTED_SASL_MECHANISM."
    )


class SaslHandshakeResponse(Message, key=17, versions=(0, 1)):
    error_code: int = int16("UNSUPPORTED_SASL_MECHANISM, or ILLEGAL_SASL_STATE out of turn.")
    mechanisms: list[str] = array(
        STRING, "All that are switched on, also on error, so that people can see their mistake."
    )
