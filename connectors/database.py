"""Names the database of connectors, for Django's transactions."""

from typing import Final

# As in `gateway.database_router`; with PostgreSQL, all tables share one database.
CONNECT: Final = "connect"
