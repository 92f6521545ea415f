"""Connectors: configured sources and sinks, which run as tasks of Celery workers."""
