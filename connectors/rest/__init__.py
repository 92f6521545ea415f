"""Kafka Connect's REST, served by the same services as pages and the command line."""
