"""The database of connectors by the name that Django's transactions are told."""

from typing import Final

# As `gateway.database_router` has it; on PostgreSQL it is one database with the others.
CONNECT: Final = "connect"
