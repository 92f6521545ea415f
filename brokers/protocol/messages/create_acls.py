"""CreateAcls: add access control entries.
API 30, versions 1-3, flexible from 2.

Versions:
  1  pattern types (KIP-290); the oldest left by KIP-896
  2  flexible (KIP-482)
  3  users as a resource (KIP-373)
"""

from brokers.protocol.schema import Message, array, int8, int16, int32, string


class AclCreation(Message):
    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8("3 literal, 4 prefixed.", default=3)
    principal: str = string("Type and name, such as User:alice; User:* is everybody.")
    host: str = string("An address; * is every host.")
    operation: int = int8()
    permission_type: int = int8("2 deny, 3 allow.")


class CreateAclsRequest(Message, key=30, versions=(1, 3), flexible=2):
    creations: list[AclCreation] = array(AclCreation)


class AclCreationResult(Message):
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )


class CreateAclsResponse(Message, key=30, versions=(1, 3), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    results: list[AclCreationResult] = array(AclCreationResult)
