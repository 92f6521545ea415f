"""Connectors: sources and sinks that are configured here, and run as tasks of Celery workers."""
