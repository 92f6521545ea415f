"""DescribeUserScramCredentials: show which users have SCRAM credentials, but no credential.
API 50, version 0, flexible from 0.

Versions:
  0  (KIP-554)
"""

from brokers.protocol.schema import Message, array, int8, int16, int32, string


class UserName(Message):
    name: str = string()


class DescribeUserScramCredentialsRequest(Message, key=50, versions=(0, 0), flexible=0):
    users: list[UserName] | None = array(UserName, "Null or empty for all users.", nullable=0)


class CredentialInfo(Message):
    mechanism: int = int8("1 SCRAM-SHA-256, 2 SCRAM-SHA-512.")
    iterations: int = int32()


class DescribeUserScramCredentialsResult(Message):
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


class DescribeUserScramCredentialsResponse(Message, key=50, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
