"""AlterUserScramCredentials: set and remove SCRAM credentials of users.
API 51, version 0, flexible from 0.

Versions:
  0  (KIP-554)
"""

from brokers.protocol.schema import Message, array, blob, int8, int16, int32, string


class ScramCredentialDeletion(Message):
    name: str = string()
    mechanism: int = int8("1 SCRAM-SHA-256, 2 SCRAM-SHA-512.")


class ScramCredentialUpsertion(Message):
    name: str = string()
    mechanism: int = int8("1 SCRAM-SHA-256, 2 SCRAM-SHA-512.")
    iterations: int = int32()
    salt: bytes = blob()
    salted_password: bytes = blob("Salted by the client: the password itself never travels.")


class AlterUserScramCredentialsRequest(Message, key=51, versions=(0, 0), flexible=0):
    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Message):
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )


class AlterUserScramCredentialsResponse(Message, key=51, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
