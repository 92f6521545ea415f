"""DeleteAcls: remove the access control entries that match filters.
API 31, versions 1-3, flexible from 2.

Versions:
  1  pattern types (KIP-290); the oldest left by KIP-896
  2  flexible (KIP-482)
  3  users as a resource (KIP-373)
"""

from brokers.protocol.schema import Message, array, int8, int16, int32, string


class DeleteAclsFilter(Message):
    resource_type_filter: int = int8("1 matches any type.")
    resource_name_filter: str | None = string("Null matches any name.", nullable=0)
    pattern_type_filter: int = int8(
        "1 any, 2 every pattern that matches the name, 3 literal, 4 prefixed.", default=3
    )
    principal_filter: str | None = string("Null matches any principal.", nullable=0)
    host_filter: str | None = string("Null matches any host.", nullable=0)
    operation: int = int8("1 matches any operation.")
    permission_type: int = int8("1 any, 2 deny, 3 allow.")


class DeleteAclsRequest(Message, key=31, versions=(1, 3), flexible=2):
    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsMatchingAcl(Message):
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("3 literal, 4 prefixed.", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class DeleteAclsFilterResult(Message):
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


class DeleteAclsResponse(Message, key=31, versions=(1, 3), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)
