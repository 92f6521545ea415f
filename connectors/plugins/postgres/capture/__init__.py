"""Change capture: what happens to rows of PostgreSQL, as Debezium tells it."""
