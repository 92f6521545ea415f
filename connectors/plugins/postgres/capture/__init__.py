"""Change capture: changes of PostgreSQL rows as Debezium's events."""
