"""Kafka Connect's REST API, over the same services as the pages and the command line."""
