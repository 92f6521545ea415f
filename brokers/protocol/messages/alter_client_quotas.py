"""AlterClientQuotas: set and remove quotas of users, client ids and addresses.
API 49, versions 0-1, flexible from 1.

Versions:
  0  (KIP-546)
  1  flexible (KIP-482)
"""

from brokers.protocol.schema import Message, array, boolean, float64, int16, int32, string


class EntityData(Message):
    entity_type: str = string("user, client-id or ip.")
    entity_name: str | None = string("Null for the default entity.", nullable=0)


class OpData(Message):
    key: str = string()
    value: float = float64()
    remove: bool = boolean("Remove the quota; value is not read then.")


class EntryData(Message):
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Message, key=49, versions=(0, 1), flexible=1):
    entries: list[EntryData] = array(EntryData)
    validate_only: bool = boolean()


class AlterClientQuotasReplyEntryData(Message):
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(Message, key=49, versions=(0, 1), flexible=1):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    entries: list[AlterClientQuotasReplyEntryData] = array(AlterClientQuotasReplyEntryData)
