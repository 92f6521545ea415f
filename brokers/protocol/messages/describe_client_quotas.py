"""DescribeClientQuotas: show the quotas set for users, client ids and addresses.
API 48, versions 0-1, flexible from 1.

Versions:
  0  (KIP-546)
  1  flexible (KIP-482)
"""

from brokers.protocol.schema import Message, array, boolean, float64, int8, int16, int32, string


class ComponentData(Message):
    entity_type: str = string("user, client-id or ip.")
    match_type: int = int8("0 the name given, 1 the default entity, 2 any name.")
    match: str | None = string("The name to match; null with the types 1 and 2.", nullable=0)


class DescribeClientQuotasRequest(Message, key=48, versions=(0, 1), flexible=1):
    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean("Leave out entities that have other components than those named.")


class EntityData(Message):
    entity_type: str = string()
    entity_name: str | None = string("Null for the default entity.", nullable=0)


class ValueData(Message):
    key: str = string()
    value: float = float64()


class EntryData(Message):
    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


class DescribeClientQuotasResponse(Message, key=48, versions=(0, 1), flexible=1):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    entries: list[EntryData] | None = array(EntryData, "Null on error.", nullable=0)
